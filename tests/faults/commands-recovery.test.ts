import { expect, test } from 'bun:test';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase } from '../../src/platform/database/database.ts';
import { identifyProcess } from '../../src/platform/system/processes.ts';
import { commandFor, makeBackupFolder, writeBackupOf } from '../support/backups.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { makeHome } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

test('commands: SIGTERM ends one whose PostgreSQL recovers, and that PostgreSQL', async () => {
  await using folder = await makeBackupFolder();
  await using external = await openExternalDatabase();
  await using home = await makeHome({}, { has_prepared_database: true });
  expect((await home.run({ command: commandFor('migrate'), settings: { DATABASE_URL: external.url } })).exit_code).toBe(
    0,
  );
  await using database = openDatabase({ url: external.url }, 1);
  const file = join(folder.path, 'earlier');
  await writeBackupOf(database, file, { tables: [], entries: {} });

  // The recovery lasts for as long as this file exists.
  const hold = join(home.data_directory, 'hold');
  writeFileSync(hold, '');
  const cluster = join(home.data_directory, 'postgres/cluster');
  appendFileSync(
    join(cluster, 'postgresql.auto.conf'),
    `restore_command = 'while [ -e ${hold} ]; do sleep 0.02; done; false'\n`,
  );
  writeFileSync(join(cluster, 'recovery.signal'), '');
  const pid_file = join(cluster, 'postmaster.pid');
  const linesOf = () => (existsSync(pid_file) ? readFileSync(pid_file, 'utf8').split('\n') : []);
  const commands: [command: string[], not_done: string][] = [
    [commandFor('migrate'), 'The database was not migrated'],
    [commandFor('backup', folder.file), 'The backup was not made'],
    [commandFor('restore', file), 'The backup was not restored'],
    [[...commandFor('upgrade'), '--check'], 'The database was not checked'],
  ];
  for (const [command, not_done] of commands) {
    const launched = home.launch({ command });
    await waitFor(() => linesOf()[7]?.trim() === 'starting', 'the recovery to begin');
    const pid = Number(linesOf()[0]);
    expect(await launched.stop('SIGTERM')).toBe(130);
    expect(launched.output()).toBe(`${not_done}, because SIGTERM stopped it.\n`);
    expect(identifyProcess(pid)).toBeUndefined();
  }
}, 300_000);
