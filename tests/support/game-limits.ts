/** A limit for tests, whose players all have one address. */
export const PLAYERS_PER_CLIENT = 1_000_000;

/** A client without a limit of players. */
export const UNLIMITED_CLIENT = { name: '127.0.0.1', players_max: PLAYERS_PER_CLIENT };
