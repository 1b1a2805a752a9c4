import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { createLogs } from '../../../src/features/servers/logs/logs.ts';
import { insertServer } from '../../../src/features/servers/store.ts';
import { topics } from '../../../src/features/topics.ts';
import { type Database, type DatabaseAddress, openDatabase } from '../../../src/platform/database/database.ts';
import { touch } from '../../../src/platform/watch/versions.ts';
import { buildsOf } from '../builds.ts';
import { createTestClock } from '../clock.ts';
import { makeRoomGame, READY_SOURCE } from '../lobbies/room.ts';
import { IS_LISTENER } from '../network/listeners.ts';
import { makeGuest, type Person } from '../people.ts';
import type { Program } from '../program.ts';
import { waitingServer } from '../runtimes/waiting-server.ts';
import { readerOf } from '../server-logs.ts';
import { makeDataDirectory } from '../service.ts';
import { openServiceTokens } from '../service-tokens.ts';

const PLAYERS_MAX = 60;
const PEOPLE = 12;
const NODE_ELSEWHERE = crypto.randomUUID();

export type WatchableGame = Awaited<ReturnType<typeof makeWatchableGame>>;

/** Makes a game with one of everything that can be watched. {@link changesOf} has the ways to change it. */
export async function makeWatchableGame(program: Program, database_address: DatabaseAddress) {
  const { api, administrator_token } = program;
  const owner = administrator_token;
  const game = await makeRoomGame(program, { source: READY_SOURCE, max_players: PLAYERS_MAX });
  const found = await api.ok('POST', '/matchmaker/lobbies/find', {
    token: game.public_token,
    body: { game_modes: ['default'] },
  });
  const { lobby_id } = found.lobby;
  const tokens = await openServiceTokens({ database_address, clock: createTestClock() });
  const lobby_token = await tokens.issue({ kind: 'lobby', lobby_id });
  const build_id = await buildsOf(program, game).make();
  const people = await Promise.all(Array.from({ length: PEOPLE }, () => makeGuest(api, game)));
  const group = `/group/groups/${game.group_id}`;
  const { code } = await api.ok('POST', `${group}/invites`, { token: owner, body: {} });
  const { game: seen } = await api.ok('GET', `/cloud/games/${game.game_id}`, { token: owner });
  const version_ids: string[] = seen.versions.map(({ version_id }: { version_id: string }) => version_id);
  const database = openDatabase(database_address, 4);
  const server_id = await insertIdleServer(database, { ...game, build_id });
  return { game, owner, lobby_id, lobby_token, build_id, people, group, code, version_ids, database, server_id };
}

/** Inserts a server without a process, which only the test changes. */
async function insertIdleServer(
  database: Database,
  { game_id, namespace_id, build_id }: { game_id: string; namespace_id: string; build_id: string },
): Promise<string> {
  const waiting = waitingServer({ game_id, namespace_id, build_id, datacenter_id: crypto.randomUUID() });
  const row = { ...waiting, node_id: NODE_ELSEWHERE, kill_timeout_ms: 0, started_at: waiting.created_at };
  await database.transact((tx) => insertServer(tx, row));
  return row.server_id;
}

/** Changes the tags of the server without a process, as stores change servers. */
export async function tagServer({ database, server_id, game }: WatchableGame, number: number): Promise<void> {
  await database.transact(async (tx) => {
    await touch(tx, [topics.server(server_id), topics.serversOf(game.namespace_id)]);
    const tags = JSON.stringify({ number: String(number) });
    await tx.execute(sql`update servers set tags = ${tags}::jsonb where server_id = ${server_id}`);
  });
}

/** Writes lines as a server does, and moves them into its log as the service does. */
export async function openLogWriter({ database, server_id }: WatchableGame) {
  const logs = createLogs({ database, clock: createTestClock() });
  const directory = await makeDataDirectory();
  const file = join(directory, 'output');
  const read = readerOf(file);
  const writer = Bun.file(file).writer();
  const log_writer = {
    lines: 0,
    async write(count: number): Promise<void> {
      for (let line = 0; line < count; line += 1) writer.write(`${log_writer.lines + line}\n`);
      await writer.flush();
      log_writer.lines += count;
      while ((await logs.collect({ server_id, stream: 'std_out' }, read, false)).has_more);
    },
    async [Symbol.asyncDispose]() {
      await writer.end();
      await rm(directory, { recursive: true, force: true });
    },
  };
  return log_writer;
}

/** Ends the connections on which processes listen for notifications, and returns how many there were. */
export async function cutListeners({ database }: Pick<WatchableGame, 'database'>): Promise<number> {
  const cut = await database.queries.execute(sql`
    select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = current_database() and ${IS_LISTENER}`);
  return cut.length;
}

/** The taken seats, by their tokens. */
export interface Seats {
  taken: string[];
}

/** Calls one of the processes. Throws if the answer is not a success. */
export type Send = (
  method: string,
  path: string,
  token: string,
  body: unknown,
) => Promise<{ player?: { token: string } }>;

/** Returns the changes that clients make, by name. Each may be made at any time. */
export function changesOf(watchable: WatchableGame, seats: Seats, send: Send) {
  const { game, owner, group, lobby_token } = watchable;
  const { game_id, namespace_id, public_token } = game;
  const isMember = new Set<Person>();
  const builds = `/games/${game_id}/environments/${namespace_id}/builds`;
  return {
    async version(number: number) {
      const version_id = watchable.version_ids[number % watchable.version_ids.length];
      await send('PUT', `/cloud/games/${game_id}/namespaces/${namespace_id}/version`, owner, { version_id });
    },
    name: (number: number) => send('POST', `${group}/profile`, owner, { display_name: `Team ${number}` }),
    async member(number: number) {
      const person = watchable.people[number % watchable.people.length];
      if (!person) return;
      if (isMember.delete(person)) await send('POST', `${group}/kick/${person.identity_id}`, owner, {});
      else {
        isMember.add(person);
        await send('POST', `/group/invites/${watchable.code}/consume`, person.token, {});
      }
    },
    tags: (number: number) =>
      send('PATCH', `${builds}/${watchable.build_id}/tags`, owner, { tags: { number: `${number}` } }),
    build: (number: number) =>
      send('POST', `${builds}/prepare`, owner, {
        name: `Build ${number}`,
        kind: 'javascript',
        image_file: { path: 'server.js', content_length: 1 },
      }),
    state: (number: number) => send('PUT', '/matchmaker/lobbies/state', lobby_token, { number }),
    closed: (number: number) => send('PUT', '/matchmaker/lobbies/closed', lobby_token, { is_closed: number % 2 === 0 }),
    async seat() {
      const player_token = seats.taken.length > PLAYERS_MAX / 2 ? seats.taken.shift() : undefined;
      if (player_token !== undefined) {
        await send('POST', '/matchmaker/players/disconnected', lobby_token, { player_token });
        return;
      }
      const { player } = await send('POST', '/matchmaker/lobbies/join', public_token, { lobby_id: watchable.lobby_id });
      if (!player) return;
      await send('POST', '/matchmaker/players/connected', lobby_token, { player_token: player.token });
      seats.taken.push(player.token);
    },
  };
}
