import {
  createLobbyCache,
  type LobbyCache,
} from '../../../src/features/lobbies/matchmaking/lobby-cache/lobby-cache.ts';
import type { CreatePlanned } from '../../../src/features/lobbies/matchmaking/new-lobbies/create-lobbies.ts';
import type { SeatRequest } from '../../../src/features/lobbies/matchmaking/rounds/seat-requests.ts';
import { createSeatRounds } from '../../../src/features/lobbies/matchmaking/rounds/seat-rounds.ts';
import { openSeatTaking } from '../../../src/features/lobbies/matchmaking/rounds/seat-taking.ts';
import { createAbandonedSeats } from '../../../src/features/lobbies/upkeep/abandoned-seats.ts';
import type { Clock } from '../../../src/platform/clock.ts';
import type { Database } from '../../../src/platform/database/database.ts';
import type { TestGame } from '../game.ts';
import { UNLIMITED_CLIENT } from '../game-limits.ts';
import { NO_AVOIDED_LOBBIES } from '../machines/lone-machine.ts';

interface UnnotifiedRoundsOptions {
  database: Database;
  clock: Clock;
  /** Changes parts of the cache. */
  change?: (cache: LobbyCache) => Partial<LobbyCache>;
  createPlanned?: CreatePlanned;
}

const createNoLobbies = async () => {
  throw new Error('a lobby was created');
};

/** Opens the rounds of a process that gets no notifications, so that it knows only its own commits and reads. */
export function openUnnotifiedRounds({
  database,
  clock,
  change,
  createPlanned = createNoLobbies,
}: UnnotifiedRoundsOptions) {
  const cache = openUnnotifiedCache(database);
  const abandoned_seats = createAbandonedSeats({ database, clock });
  const seat_taking = openSeatTaking({ database, clock, abandoned_seats, seat_timeout_ms: 60_000 });
  const { pool_max } = database;
  const rounds = createSeatRounds({ cache: { ...cache, ...change?.(cache) }, seat_taking, createPlanned, pool_max });
  return { ...rounds, abandoned_seats };
}

/** Opens the cache of a process that gets no notifications. */
export function openUnnotifiedCache(database: Database): LobbyCache {
  const feed = { subscribe: () => () => {}, observe() {}, async [Symbol.asyncDispose]() {} };
  return createLobbyCache({ database, feed, avoided: NO_AVOIDED_LOBBIES });
}

/** Returns a find of one player in one game mode, as the rounds get it. */
export function requestSeat(
  { game_id, namespace_id, version_id }: TestGame & { version_id: string },
  { may_create = false, game_mode = 'default' } = {},
): SeatRequest {
  const maxima = { max_players_normal: 10, max_players_direct: 10, max_players_party: 10 };
  const lobby = { game_mode, region: 'local', tags: {}, ...maxima, publicity: null, lobby_config: undefined };
  const new_lobby = may_create ? lobby : undefined;
  const search = { game_modes: [game_mode], regions: ['local'], tags: {}, new_lobby };
  const player_id = Bun.randomUUIDv7();
  return { kind: 'find', player_id, game_id, namespace_id, version_id, address: '', client: UNLIMITED_CLIENT, search };
}

/** Returns the database with `onQuery` called before each query. It may throw. */
export function watchQueries(database: Database, onQuery: () => void): Database {
  const watch = <Target extends object>(queries: Target) =>
    new Proxy(queries, {
      get(target, name) {
        onQuery();
        const value = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  return {
    ...database,
    queries: watch(database.queries),
    openDedicatedConnection: (options) => watch(database.openDedicatedConnection(options)),
    [Symbol.asyncDispose]: async () => {},
  };
}

/** Returns the database with a counter of its queries. */
export function countQueries(database: Database): { database: Database; counted: () => number } {
  let count = 0;
  const counting = watchQueries(database, () => {
    count += 1;
  });
  return { database: counting, counted: () => count };
}
