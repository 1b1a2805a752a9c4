import { expect, test } from 'bun:test';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import journal from '../../drizzle/meta/_journal.json' with { type: 'json' };
import { selectOnMachine } from '../../src/features/servers/store.ts';
import { findAsset } from '../../src/platform/assets.ts';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { migrateDatabase } from '../../src/platform/database/migrate.ts';
import { openExternalDatabase } from '../support/database/database.ts';

const MIB = 1024 ** 2;
/** The id of a part's object, which the column `receipts` had before 0054. A missing part is null, or absent at the end. */
const HERE = crypto.randomUUID();

interface OldUpload {
  is_multipart: boolean;
  is_complete?: boolean;
  files: { content_length: number; receipts: (string | null)[] }[];
}

/** Applies all migrations before the given one. */
async function migrateUntil(database: Database, tag: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-migrations-'));
  await cp(findAsset('drizzle'), folder, { recursive: true });
  const index = journal.entries.findIndex((entry) => entry.tag === tag);
  expect(index).toBeGreaterThan(0);
  const entries = journal.entries.slice(0, index);
  await writeFile(join(folder, 'meta/_journal.json'), JSON.stringify({ ...journal, entries }));
  await migrateDatabase(database, { version: 'before', folder });
  await rm(folder, { recursive: true });
}

async function insertUpload({ queries }: Database, { is_multipart, is_complete = false, files }: OldUpload) {
  const upload_id = crypto.randomUUID();
  const content_length = files.reduce((sum, file) => sum + file.content_length, 0);
  await queries.execute(sql`
    insert into uploads (upload_id, kind, is_multipart, content_length, create_ts, complete_ts)
    values (${upload_id}, 'build', ${is_multipart}, ${content_length}, now(), case when ${is_complete}::boolean then now() end)`);
  for (const [number, file] of files.entries()) {
    await queries.execute(sql`
      insert into upload_files (upload_id, file_number, path, content_length, receipts)
      values (${upload_id}, ${number}, ${`file-${number}`}, ${file.content_length}, ${sql.param(file.receipts)}::uuid[])`);
  }
  return upload_id;
}

test('0023_received-length: an unfinished upload has the bytes of the parts that have arrived', async () => {
  await using external = await openExternalDatabase();
  await using database = openDatabase({ url: external.url }, 2);
  await migrateUntil(database, '0023_received-length');
  const cases: [what: string, upload: OldUpload, received_length: number][] = [
    ['nothing has arrived', { is_multipart: false, files: [{ content_length: 5, receipts: [] }] }, 0],
    ['a file has arrived', { is_multipart: false, files: [{ content_length: 5, receipts: [HERE] }] }, 5],
    [
      'a file above the size of a part, sent as one',
      { is_multipart: false, files: [{ content_length: 250 * MIB, receipts: [HERE] }] },
      250 * MIB,
    ],
    [
      'one file of two',
      {
        is_multipart: false,
        files: [
          { content_length: 5, receipts: [] },
          { content_length: 7, receipts: [HERE] },
        ],
      },
      7,
    ],
    [
      'the first and the last part of three',
      { is_multipart: true, files: [{ content_length: 250 * MIB, receipts: [HERE, null, HERE] }] },
      150 * MIB,
    ],
    [
      'the second part',
      { is_multipart: true, files: [{ content_length: 250 * MIB, receipts: [null, HERE] }] },
      100 * MIB,
    ],
    ['an empty file', { is_multipart: true, files: [{ content_length: 0, receipts: [HERE] }] }, 0],
    // A complete upload shows its length.
    ['complete', { is_multipart: false, is_complete: true, files: [{ content_length: 5, receipts: [HERE] }] }, 0],
  ];
  const upload_ids = await Promise.all(cases.map(([, upload]) => insertUpload(database, upload)));
  await migrateDatabase(database);
  const rows = await database.queries.execute<{ upload_id: string; received_length: string }>(
    sql`select upload_id, received_length from uploads`,
  );
  const received = new Map(rows.map((row) => [row.upload_id, Number(row.received_length)]));
  expect(cases.map(([what], index) => [what, received.get(upload_ids[index] ?? '')])).toEqual(
    cases.map(([what, , received_length]) => [what, received_length]),
  );
}, 300_000);

test('0029_server-identities: servers of the release before are found, also those that it adds after the migration', async () => {
  await using external = await openExternalDatabase();
  await using database = openDatabase({ url: external.url }, 2);
  await migrateUntil(database, '0029_server-identities');
  const [node_id, namespace_id] = [crypto.randomUUID(), crypto.randomUUID()];
  await database.queries.execute(
    sql`alter table servers drop constraint servers_namespace_id_namespaces_namespace_id_fk`,
  );
  const identity = { pid: 4_711, start_ticks: 815, boot_id: crypto.randomUUID() };
  /** A server as the previous release writes it once it has taken and started it. */
  const insertServer = (server_id: string) =>
    database.queries.execute(sql`
      insert into servers (
        server_id, game_id, namespace_id, datacenter_id, build_id, tags, arguments, environment, service_environment,
        network_mode, ports, cpu, memory, kill_timeout_ms, created_at, node_id, user_id, process, started_at
      ) values (
        ${server_id}, gen_random_uuid(), ${namespace_id}, gen_random_uuid(), gen_random_uuid(), '{}', '[]', '{}', '{}',
        'bridge', '{}', 100, 64, 30000, now(), ${node_id}, 1900000000, ${JSON.stringify(identity)}::jsonb, now()
      )`);
  const [before, after] = [crypto.randomUUID(), crypto.randomUUID()];
  await insertServer(before);
  await migrateDatabase(database);
  await insertServer(after);
  const servers = await selectOnMachine(database.queries, node_id);
  expect(servers.map((server) => [server.server_id, server.identity])).toEqual([
    [before, identity],
    [after, identity],
  ]);
  const old = await database.queries.execute(sql`select user_id, process from servers where server_id = ${before}`);
  expect([...old]).toEqual([{ user_id: 1_900_000_000, process: identity }]);
}, 300_000);

test('0033_client-numbers: seated players get numbers, and those whom the release before seats later get others', async () => {
  await using external = await openExternalDatabase();
  await using database = openDatabase({ url: external.url }, 2);
  const { queries } = database;
  await migrateUntil(database, '0033_client-numbers');
  const [lobby_id, namespace_id] = [crypto.randomUUID(), crypto.randomUUID()];
  /** Seats and counts a player as the previous release does. */
  const seat = async (client: string | null, second: number) => {
    const player_id = crypto.randomUUID();
    await queries.execute(sql`
      insert into players (player_id, lobby_id, namespace_id, address, client, create_ts)
      values (${player_id}, ${lobby_id}, ${namespace_id}, '', ${client}, now() + ${second} * interval '1 second')`);
    if (client === null) return player_id;
    await queries.execute(sql`
      insert into client_counts (namespace_id, client, player_count, player_max) values (${namespace_id}, ${client}, 1, 8)
      on conflict (namespace_id, client) do update set player_count = client_counts.player_count + 1`);
    return player_id;
  };
  const [second, first, other, gone] = [await seat('a', 2), await seat('a', 1), await seat('b', 3), await seat('a', 0)];
  const uncounted = [await seat(null, 4), await seat(null, 5)];
  await queries.execute(sql`update players set remove_ts = now() where player_id = ${gone}`);
  await migrateDatabase(database);
  const late = [await seat('a', 6), await seat('a', 7)];
  const rows = await queries.execute<{ player_id: string; client_number: number | null }>(sql`
    select player_id, client_number from players`);
  const numbers = new Map(rows.map(({ player_id, client_number }) => [player_id, client_number]));
  const numberOf = (player_id: string) => numbers.get(player_id);
  expect([first, second, other, gone, ...uncounted].map(numberOf)).toEqual([1, 2, 1, null, null, null]);
  for (const player_id of late) expect(numberOf(player_id)).toBeGreaterThanOrEqual(1_000_000_000);
  // The previous release decreases the count when a player leaves whom this release has seated.
  await queries.execute(sql`
    update client_counts set player_count = player_count - 6 where namespace_id = ${namespace_id} and client = 'a'`);
}, 300_000);

test('0060_files-of-a-game: files of earlier uploads have the game of their upload', async () => {
  await using external = await openExternalDatabase();
  await using database = openDatabase({ url: external.url }, 2);
  await migrateUntil(database, '0060_files-of-a-game');
  await database.queries.execute(sql`alter table uploads drop constraint uploads_game_id_games_game_id_fk`);
  const game_id = crypto.randomUUID();
  const upload_of_game = await insertUpload(database, {
    is_multipart: false,
    files: [
      { content_length: 5, receipts: [HERE] },
      { content_length: 0, receipts: [] },
    ],
  });
  await database.queries.execute(sql`update uploads set game_id = ${game_id} where upload_id = ${upload_of_game}`);
  const other = await insertUpload(database, { is_multipart: false, files: [{ content_length: 5, receipts: [HERE] }] });
  await migrateDatabase(database);
  const rows = await database.queries.execute<{ upload_id: string; game_id: string | null }>(sql`
    select upload_id, game_id from upload_files`);
  const gamesOf = (upload_id: string) => rows.flatMap((row) => (row.upload_id === upload_id ? [row.game_id] : []));
  expect(gamesOf(upload_of_game)).toEqual([game_id, game_id]);
  expect(gamesOf(other)).toEqual([null]);
}, 300_000);
