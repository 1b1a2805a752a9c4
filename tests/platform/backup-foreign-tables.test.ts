import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { tableEntry } from '../../src/platform/backup/entries.ts';
import { openDatabase } from '../../src/platform/database/database.ts';
import { commandFor, makeBackupFolder, RESTORED, runOn, writeBackupOf } from '../support/backups.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { makeHome } from '../support/program.ts';

test('backup and restore: tables that are not of Muster are left out, and left alone', async () => {
  await using folder = await makeBackupFolder();
  await using source = await openExternalDatabase();
  await using home = await makeHome({ DATABASE_URL: source.url });
  expect((await home.run({ command: commandFor('migrate') })).exit_code).toBe(0);
  {
    await using database = openDatabase({ url: source.url }, 1);
    await database.queries.execute(sql`create table notes (word text)`);
    await database.queries.execute(sql`create table "Notes" ("createdAt" text)`);
    await database.queries.execute(sql`
      insert into signing_keys values (gen_random_uuid(), 'upload', '{"kty": "oct", "k": "a"}', now())`);
  }
  const made = await runOn(home, 'backup', folder.file);
  expect(made).toEqual({ exit_code: 0, output: expect.stringContaining('The backup is ') });
  const left_out = [...made.output.matchAll(/^The table (.+) is not Muster's, and is not in the backup\.$/gm)];
  // All others are tables that a migration creates.
  expect(left_out.map(([, name]) => name).sort()).toEqual(['Notes', 'notes']);

  await using target = await openExternalDatabase();
  await using database = openDatabase({ url: target.url }, 1);
  await database.queries.execute(sql`create table notes (id bigint generated always as identity, word text)`);
  await database.queries.execute(sql`insert into notes (word) values ('kept'), ('removed')`);
  await database.queries.execute(sql`delete from notes where word = 'removed'`);
  await using other_home = await makeHome({ DATABASE_URL: target.url });
  expect(await runOn(other_home, 'restore', folder.file)).toEqual({
    exit_code: 0,
    output: expect.stringMatching(RESTORED),
  });
  const [keys] = await database.queries.execute(sql`select count(*)::int as count from signing_keys`);
  expect(keys).toEqual({ count: 1 });
  // Its sequence goes on where it was, after the removed row.
  await database.queries.execute(sql`insert into notes (word) values ('next')`);
  expect([...(await database.queries.execute(sql`select id::int, word from notes order by id`))]).toEqual([
    { id: 1, word: 'kept' },
    { id: 3, word: 'next' },
  ]);
}, 300_000);

test('restore: a table of another program, in a backup of an earlier release, is skipped', async () => {
  await using folder = await makeBackupFolder();
  await using source = await openExternalDatabase();
  await using home = await makeHome({ DATABASE_URL: source.url });
  expect((await home.run({ command: commandFor('migrate') })).exit_code).toBe(0);
  await using database = openDatabase({ url: source.url }, 1);
  const file = join(folder.path, 'earlier');
  const tables = [{ name: 'notes', columns: ['word'] }];
  await writeBackupOf(database, file, { tables, entries: { [tableEntry('notes', 1)]: 'kept\n' } });
  const restored = await runOn(home, 'restore', file);
  expect(restored.output).toContain("The table notes is not Muster's, and is not restored.\n");
  expect(restored.exit_code).toBe(0);
}, 300_000);
