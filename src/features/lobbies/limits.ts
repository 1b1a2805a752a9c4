import { inOneMinute, perMinute } from '../../platform/limits/limit.ts';

/** How often the matchmaker may be called: for each namespace and address, and for each lobby (docs/decisions/0018). */
export const LIMITS = {
  /** Find and join: a seat whose player does not come stays taken for two minutes. */
  seats: inOneMinute('seats', 16),
  /** Each may start a game server. */
  creates: perMinute('lobbies-create', 3),
  /** A lobby browser asks every other second, and whole schools play behind one address; what it reads is small. */
  browsing: inOneMinute('lobbies-browse', 1_200),
  ready: perMinute('lobbies-ready', 512),
  closing: perMinute('lobbies-closed', 1_024),
  states: perMinute('lobbies-state', 1_024),
  players: perMinute('players', 16_384),
} as const;
