import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { topics } from '../../src/features/topics.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { loadKey } from '../../src/platform/tokens/keys.ts';
import { createTokens } from '../../src/platform/tokens/tokens.ts';
import { touch } from '../../src/platform/watch/versions.ts';
import { connectionOf } from '../../tests/support/embedded.ts';
import { copyLobbies } from '../../tests/support/lobby-copies.ts';
import { postgresOf } from '../../tests/support/processes.ts';
import { commandOf, makeHome, type Program } from '../../tests/support/program.ts';
import { makeRoomGame, QUIET_SOURCE } from '../../tests/support/room.ts';
import { familyOf } from '../meter.ts';

export const SEATS_PER_LOBBY = 100;
const LOBBIES_AT_ONCE = 10_000;

/** Checks, receipts and tokens are as they are by default. All requests are counted, and none is one too many. */
const SETTINGS = {
  MUSTER_LIMITS_SCALE: '1000000',
  MUSTER_DATABASE_POOL: '10',
  MUSTER_DEMO: 'off',
  MUSTER_LOG: 'error',
  MUSTER_SEAT_TIMEOUT_MS: '3600000',
};

/** The service with lobbies of 100 that players can be sent to. */
export interface Arena extends AsyncDisposable {
  name: string;
  program: Program;
  pid: number;
  /** The processes of its PostgreSQL; none where it is not ours. */
  database_pids(): number[];
  port: number;
  database: Database;
  /** The answer of a find. */
  answer: string;
  /** Of a player: lines of the request. */
  headers: string;
  /** Of the server of the first lobby. */
  lobby_headers: string;
  namespace_id: string;
  /** Ids of the lobbies. */
  lobby_ids: string[];
  /** What their server runs. */
  room_source: string;
  /** Empties all lobbies, and lets there be so many, of so many seats each. */
  reset(wanted: { lobbies: number; seats?: number }): Promise<void>;
}

interface ArenaOptions {
  /** A database of its own on a PostgreSQL that is there; without it the embedded one. */
  url?: string;
  /** By their names in the environment. */
  settings?: Record<string, string>;
}

/** Starts it from source. */
export async function openArena(name: string, { url, settings }: ArenaOptions = {}): Promise<Arena> {
  await using opened = new AsyncDisposableStack();
  const home = opened.use(
    await makeHome({ ...SETTINGS, ...settings, ...(url === undefined ? {} : { DATABASE_URL: url }) }),
  );
  const program = await home.start({ command: commandOf('source') });
  const directory = join(home.data_directory, 'postgres');
  const address = url === undefined ? connectionOf({ directory } as Parameters<typeof connectionOf>[0]) : { url };
  const database = opened.use(openDatabase(address, 2));
  const game = await makeRoomGame(program, { source: QUIET_SOURCE, max_players: SEATS_PER_LOBBY, mode: MODE });
  const { namespace_id, public_token } = game;
  // All players come from one address, and lobbies are put into the database in front of it.
  await database.queries.execute(sql`
    update namespaces set max_players_per_client = 2000000000, lobby_count_max = 1000000
    where namespace_id = ${namespace_id}`);
  await database.transact((tx) => touch(tx, [topics.namespace(namespace_id)]));
  const find = { token: public_token, body: { game_modes: ['default'] } };
  const answer = await program.api.ok('POST', '/matchmaker/lobbies/find', find);
  const { lobby_id: first } = answer.lobby;
  const lobby_ids: string[] = [first];

  /** Lobbies like the first one, on its server. */
  async function addLobbies(count: number): Promise<void> {
    const ids = Array.from({ length: count }, () => Bun.randomUUIDv7());
    const from = sql`lobbies as lobby, unnest(${sql.param(ids)}::uuid[]) as made where lobby.lobby_id = ${first}`;
    await database.queries.execute(copyLobbies(from, sql`jsonb_build_object('lobby_id', made, 'code', null)`));
    lobby_ids.push(...ids);
  }

  const tokens = await createTokens(await loadKey(database.queries, systemClock, 'token'), systemClock);
  const { port } = new URL(program.url);
  const everything = opened.move();
  return {
    name,
    program,
    pid: program.pid,
    database_pids: () => (url === undefined ? familyOf(postgresOf(home.data_directory)) : []),
    port: Number(port),
    database,
    answer: JSON.stringify(answer),
    headers: `authorization: Bearer ${public_token}\r\n`,
    lobby_headers: `authorization: Bearer ${await tokens.issue({ kind: 'lobby', lobby_id: first })}\r\n`,
    namespace_id,
    lobby_ids,
    room_source: QUIET_SOURCE,
    async reset({ lobbies, seats = SEATS_PER_LOBBY }) {
      const { queries } = database;
      await queries.execute(sql`truncate players`);
      const surplus = lobby_ids.splice(lobbies);
      while (lobby_ids.length < lobbies) await addLobbies(Math.min(LOBBIES_AT_ONCE, lobbies - lobby_ids.length));
      const list = topics.lobbiesOf(namespace_id);
      await database.transact(async (tx) => {
        // Of all lobbies at once, which the service never does.
        await tx.execute(sql`set local statement_timeout = 0`);
        const version = (await touch(tx, [list])).get(list) ?? 0;
        await tx.execute(sql`
          update lobbies set player_count = 0, changed = ${version}, idle_ts = null,
            max_players_normal = ${seats}, max_players_direct = ${seats}, max_players_party = ${seats}
          where namespace_id = ${namespace_id} and stop_ts is null`);
        await tx.execute(sql`
          update lobbies set stop_ts = now(), stop_reason = 'removed'
          where lobby_id = any(${sql.param(surplus)}::uuid[])`);
      });
      await queries.execute(sql`vacuum analyze lobbies`);
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

const MODE = { actions: { create: { enabled: true } } };
