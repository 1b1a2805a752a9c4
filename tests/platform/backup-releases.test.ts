import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import journal from '../../drizzle/meta/_journal.json' with { type: 'json' };
import manifest from '../../package.json' with { type: 'json' };
import { writeArchive } from '../../src/platform/backup/archive-writer.ts';
import { HEADER_ENTRY } from '../../src/platform/backup/header.ts';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { migrateDatabase } from '../../src/platform/database/migrate.ts';
import { commandFor, makeBackupFolder, RESTORED, runOn } from '../support/backups.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { makeHome } from '../support/program.ts';
import { writeEarlierRelease, writeNextRelease } from '../support/releases.ts';

/** The executable's version also has the commit that it was built from. */
const THIS_RELEASE = new RegExp(`^${RegExp.escape(manifest.version)}(-dev\\..*)?$`);

let folder: Awaited<ReturnType<typeof makeBackupFolder>>;
beforeAll(async () => {
  folder = await makeBackupFolder();
});
afterAll(() => folder[Symbol.asyncDispose]());

/** A database with the migrations of another release, and a home of this program on it. */
async function openRelease(version: string, writeMigrations: (folder: string) => Promise<void>) {
  await using opened = new AsyncDisposableStack();
  const external = opened.use(await openExternalDatabase());
  const database = opened.use(openDatabase({ url: external.url }, 2));
  const migrations = await mkdtemp(join(tmpdir(), 'muster-releases-'));
  await writeMigrations(migrations);
  await migrateDatabase(database, { version, folder: migrations });
  await rm(migrations, { recursive: true });
  const home = opened.use(await makeHome({ DATABASE_URL: external.url }));
  const everything = opened.move();
  return { database, home, [Symbol.asyncDispose]: () => everything.disposeAsync() };
}

const releasesOf = async ({ queries }: Database) =>
  (await queries.execute<{ release: string }>(sql`select release from migrations order by id`)).map(
    ({ release }) => release,
  );

test('restore: a backup of a newer release is refused, and nothing is written', async () => {
  const file = join(folder.path, 'newer');
  await using newer = await openRelease('98.7.6', writeNextRelease);
  expect((await runOn(newer.home, 'backup', file)).exit_code).toBe(0);
  await using target = await openExternalDatabase();
  await using home = await makeHome({ DATABASE_URL: target.url });
  const { exit_code, output } = await runOn(home, 'restore', file);
  expect(exit_code).toBe(1);
  expect(output).toMatch(
    /^The backup is of Muster 98\.7\.6, and this is Muster \S+, which does not know its database: restore it with Muster 98\.7\.6 or a later release\.\n$/,
  );
  await using database = openDatabase({ url: target.url }, 1);
  const tables = await database.queries.execute(sql`select from pg_class where relnamespace = 'public'::regnamespace`);
  expect(tables).toHaveLength(0);
}, 300_000);

test('restore: a backup in a later format, an archive that is not a backup and a missing file are refused', async () => {
  await using home = await makeHome();
  const FIRST: [content: object, refusal: string][] = [
    [
      { format: 2, version: '98.7.6' },
      'was made by Muster 98.7.6, whose backups this release cannot read: restore it with that release, or a later one.',
    ],
    [{ format: 1 }, 'is not a backup of Muster: name a file that "muster backup" wrote.'],
    [[], 'is not a backup of Muster: name a file that "muster backup" wrote.'],
  ];
  for (const [index, [content, refusal]] of FIRST.entries()) {
    const file = join(folder.path, `first-${index}`);
    const { signal } = new AbortController();
    await writeArchive(file, { signal, onWritten() {}, onChecking() {} }, async ({ add }) => {
      const bytes = Buffer.from(JSON.stringify(content));
      await add(HEADER_ENTRY, [bytes], bytes.length);
    });
    expect(await runOn(home, 'restore', file)).toEqual({ exit_code: 1, output: `${file} ${refusal}\n` });
  }
  const missing = join(folder.path, 'missing');
  expect(await runOn(home, 'restore', missing)).toEqual({
    exit_code: 1,
    output: `There is no file ${missing}: name one that "muster backup" wrote.\n`,
  });
}, 300_000);

test('restore: a backup of an earlier release gets the tables of that release, which the next start migrates', async () => {
  const WITHOUT = 3;
  const file = join(folder.path, 'earlier');
  await using earlier = await openRelease('0.0.9', (migrations) => writeEarlierRelease(migrations, WITHOUT));
  await earlier.database.queries.execute(sql`
    insert into signing_keys values (gen_random_uuid(), 'upload', '{"kty": "oct", "k": "a\\tb\\n\\\\"}', now())`);
  const keys = sql`select * from signing_keys`;
  const before = [...(await earlier.database.queries.execute(keys))];
  expect((await runOn(earlier.home, 'backup', file)).exit_code).toBe(0);

  await using target = await openExternalDatabase();
  await using home = await makeHome({ DATABASE_URL: target.url });
  expect(await runOn(home, 'restore', file)).toEqual({ exit_code: 0, output: expect.stringMatching(RESTORED) });
  await using database = openDatabase({ url: target.url }, 1);
  expect([...(await database.queries.execute(keys))]).toEqual(before);
  const earlier_releases = journal.entries.slice(0, -WITHOUT).map(() => '0.0.9');
  expect(await releasesOf(database)).toEqual(earlier_releases);
  expect((await home.run({ command: commandFor('migrate') })).exit_code).toBe(0);
  expect(await releasesOf(database)).toEqual([
    ...earlier_releases,
    ...Array(WITHOUT).fill(expect.stringMatching(THIS_RELEASE)),
  ]);
  expect([...(await database.queries.execute(keys))]).toEqual(before);

  // The tables of this release are empty, but the rows of the earlier one would not fit.
  await using migrated = await openExternalDatabase();
  await using other = await makeHome({ DATABASE_URL: migrated.url });
  expect((await other.run({ command: commandFor('migrate') })).exit_code).toBe(0);
  expect(await runOn(other, 'restore', file)).toEqual({
    exit_code: 1,
    output: 'The database has the tables of a later release than the backup: use an empty database.\n',
  });
}, 300_000);

test('backup: a database of a much earlier release, with an upload, is backed up and restored', async () => {
  const KEPT = 18;
  const file = join(folder.path, 'much-earlier');
  await using earlier = await openRelease('0.0.1', (migrations) =>
    writeEarlierRelease(migrations, journal.entries.length - KEPT),
  );
  // Releases were not recorded then.
  await earlier.database.queries.execute(sql`alter table migrations drop column release`);
  const [upload_id, object_id] = [crypto.randomUUID(), crypto.randomUUID()];
  await earlier.database.queries.execute(sql`
    insert into uploads (upload_id, kind, is_multipart, content_length, create_ts, complete_ts)
    values (${upload_id}, 'group_avatar', false, 7, now(), now())`);
  await earlier.database.queries.execute(sql`
    insert into upload_files (upload_id, file_number, path, content_length, receipts)
    values (${upload_id}, 0, 'a.png', 7, array[${object_id}::uuid])`);
  const object = join('objects', upload_id, `0.0.${object_id}`);
  await Bun.write(join(earlier.home.data_directory, object), 'content');
  const made = await runOn(earlier.home, 'backup', file);
  expect(made).toEqual({ exit_code: 0, output: expect.stringContaining('The backup is ') });

  await using target = await openExternalDatabase();
  await using home = await makeHome({ DATABASE_URL: target.url });
  expect(await runOn(home, 'restore', file)).toEqual({ exit_code: 0, output: expect.stringMatching(RESTORED) });
  expect(await Bun.file(join(home.data_directory, object)).text()).toBe('content');
  expect((await home.run({ command: commandFor('migrate') })).exit_code).toBe(0);
}, 300_000);
