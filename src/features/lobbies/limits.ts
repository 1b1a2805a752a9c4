import { averagePerMinute, inEachMinute } from '../../platform/limits/limit.ts';

/** Rate limits of the matchmaker: for each namespace and address, and for each lobby (docs/decisions/0018). */
export const LIMITS = {
  /** Find and join. Low, because a seat stays taken for two minutes if its player does not connect. */
  seats: inEachMinute('seats', 16),
  /** Low, because each may start a game server. */
  creates: averagePerMinute('lobbies-create', 3),
  /** High, because a lobby browser may poll every other second, and a whole school may play behind one address. */
  browsing: inEachMinute('lobbies-browse', 1_200),
  ready: averagePerMinute('lobbies-ready', 512),
  closing: averagePerMinute('lobbies-closed', 1_024),
  states: averagePerMinute('lobbies-state', 1_024),
  players: averagePerMinute('players', 16_384),
} as const;
