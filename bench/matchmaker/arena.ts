import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { topics } from '../../src/features/topics.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { loadKey } from '../../src/platform/tokens/keys.ts';
import { createTokens } from '../../src/platform/tokens/tokens.ts';
import { touch } from '../../src/platform/watch/versions.ts';
import { connectionOf } from '../../tests/support/database/embedded.ts';
import { makeRoomGame, READY_SOURCE } from '../../tests/support/lobbies/room.ts';
import { postgresOf } from '../../tests/support/processes.ts';
import { commandOf, makeHome, type Program } from '../../tests/support/program.ts';
import { type Lobbies, openLobbies, SEATS_PER_LOBBY } from './lobbies.ts';
import { FIND, type Target } from './targets.ts';

const PROXY_SECRET = 'the load is a proxy that all players come through';
/**
 * The process that makes requests is a trusted proxy, so each player has an address. Other settings have their
 * defaults, except that players who never connect keep their seats for as long as a bench runs.
 */
export const SETTINGS = {
  MUSTER_TRUSTED_PROXIES: '127.0.0.1',
  MUSTER_PROXY_SECRET: PROXY_SECRET.replaceAll(' ', '-'),
  MUSTER_LIMITS_SCALE: '1',
  MUSTER_DATABASE_POOL: '10',
  MUSTER_DEMO: 'off',
  MUSTER_LOG: 'error',
  MUSTER_SEAT_TIMEOUT_MS: '3600000',
};
/** The default, which games of tests raise. */
const CLIENT_PLAYERS_MAX = 8;
/** For statements that change every lobby at once. */
const DEADLINES = { query_ms: 120_000, pool_wait_ms: 2_000, transaction_ms: 120_000 };

/** The service from source on an embedded PostgreSQL, with a namespace whose lobbies the bench writes. */
export interface Arena extends Played {
  program: Program;
  database: Database;
  /** How other processes reach the database. */
  connection: ReturnType<typeof connectionOf>;
  database_pid: number;
  port: number;
  /** Returns lines of a request of a lobby's server. */
  headersOf(lobby_id: string): Promise<string>;
}

/** A namespace whose lobbies the bench writes. */
export interface Played {
  namespace_id: string;
  lobbies: Lobbies;
  /** The answer of a find, as JSON. */
  answer: string;
  /** Lines of a player's request. */
  headers: string;
}

export async function openArena(
  opened: AsyncDisposableStack,
  { settings }: { settings?: Record<string, string> } = {},
): Promise<Arena> {
  const home = opened.use(await makeHome({ ...SETTINGS, ...settings }));
  const program = await home.start({ command: commandOf('source') });
  const connection = connectionOf({ directory: join(home.data_directory, 'postgres') });
  const database = opened.use(openDatabase(connection, 2, DEADLINES));
  const tokens = await createTokens(await loadKey(database.queries, systemClock, 'token'), systemClock);
  return {
    program,
    database,
    connection,
    database_pid: postgresOf(home.data_directory),
    port: Number(new URL(program.url).port),
    ...(await makeNamespace(program, database)),
    headersOf: async (lobby_id) => headersFor(await tokens.issue({ kind: 'lobby', lobby_id })),
  };
}

/** Makes a game, and opens the lobbies of its namespace. */
export async function makeNamespace(program: Program, database: Database): Promise<Played> {
  const mode = { actions: { create: { enabled: true } } };
  const game = await makeRoomGame(program, { source: READY_SOURCE, max_players: SEATS_PER_LOBBY, mode });
  const { namespace_id, public_token } = game;
  await database.queries.execute(sql`
    update namespaces set lobby_count_max = 1000000, max_players_per_client = ${CLIENT_PLAYERS_MAX}
    where namespace_id = ${namespace_id}`);
  await database.transact((tx) => touch(tx, [topics.namespace(namespace_id)]));
  const find = { token: public_token, body: JSON.parse(FIND.body) };
  const answer = await program.api.ok('POST', FIND.path, find);
  return {
    namespace_id,
    lobbies: openLobbies(database, namespace_id, answer.lobby.lobby_id),
    answer: JSON.stringify(answer),
    headers: headersFor(public_token),
  };
}

const headersFor = (token: string) =>
  `authorization: Bearer ${token}\r\nmuster-proxy-secret: ${SETTINGS.MUSTER_PROXY_SECRET}\r\n`;

/** Finds in an arena, which is emptied before each turn. */
export function findsIn(name: string, arena: Arena, wanted: Parameters<Lobbies['empty']>[0]): Target {
  const { program, database_pid, port, headers, lobbies } = arena;
  return { ...FIND, name, pid: program.pid, database_pid, port, headers, prepare: () => lobbies.empty(wanted) };
}
