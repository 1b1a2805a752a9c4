import { inOneMinute, perMinute } from '../../platform/limits/limit.ts';

/** Rate limits of the matchmaker: for each namespace and address, and for each lobby (docs/decisions/0018). */
export const LIMITS = {
  /** Find and join. Low, because a seat stays taken for two minutes if its player does not connect. */
  seats: inOneMinute('seats', 16),
  /** Low, because each may start a game server. */
  creates: perMinute('lobbies-create', 3),
  /** High, because a lobby browser may poll every other second, and a whole school may play behind one address. */
  browsing: inOneMinute('lobbies-browse', 1_200),
  ready: perMinute('lobbies-ready', 512),
  closing: perMinute('lobbies-closed', 1_024),
  states: perMinute('lobbies-state', 1_024),
  players: perMinute('players', 16_384),
} as const;
