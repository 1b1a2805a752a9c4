import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { objectEntry, tableEntry } from '../../src/platform/backup/entries.ts';
import { openDatabase } from '../../src/platform/database/database.ts';
import { commandFor, makeBackupFolder, RESTORED, runOn, writeBackupOf } from '../support/backups.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { openSmallS3 } from '../support/objects/small-s3.ts';
import { makeHome } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

test('restore: one that loses its lock writes nothing to the database, and can be repeated', async () => {
  await using folder = await makeBackupFolder();
  await using source = await openExternalDatabase();
  await using source_home = await makeHome({ DATABASE_URL: source.url });
  expect((await source_home.run({ command: commandFor('migrate') })).exit_code).toBe(0);
  await using source_database = openDatabase({ url: source.url }, 1);
  const tables = [{ name: 'signing_keys', columns: ['key_id', 'purpose', 'key', 'create_ts'] }];
  const key = [crypto.randomUUID(), 'upload', '{}', '2030-01-01 00:00:00+00'];
  const entries = { [tableEntry('signing_keys', 1)]: `${key.join('\t')}\n`, [objectEntry('folder/1')]: 'content' };
  await writeBackupOf(source_database, folder.file, { tables, entries });

  await using bucket = await openSmallS3();
  await using target = await openExternalDatabase();
  await using home = await makeHome({ DATABASE_URL: target.url, ...bucket.settings });
  const releaseWrites = bucket.holdWrites();
  const launched = home.launch({ command: commandFor('restore', folder.file) });
  await waitFor(() => bucket.under_way > 0, 'it to write a file');
  await using database = openDatabase({ url: target.url }, 1);
  const lost = await database.queries.execute(sql`
    select pg_terminate_backend(pid) from pg_locks join pg_database on pg_database.oid = database
    where locktype = 'advisory' and datname = current_database()`);
  expect(lost).toHaveLength(1);
  releaseWrites();
  expect(await launched.exited).toBe(1);
  expect(launched.output()).toMatch(
    /^The backup was not restored, because .*: repeat the command once it answers\.\n$/,
  );

  expect(await runOn(home, 'restore', folder.file)).toEqual({ exit_code: 0, output: expect.stringMatching(RESTORED) });
  const keys = await database.queries.execute(sql`select key_id::text from signing_keys`);
  expect([...keys]).toEqual([{ key_id: key[0] }]);
}, 300_000);
