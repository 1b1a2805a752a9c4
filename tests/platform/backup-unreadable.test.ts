import { expect, test } from 'bun:test';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandFor, makeBackupFolder, runOn } from '../support/backups.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { makeHome } from '../support/program.ts';

test('restore: a path that cannot be read is refused in one sentence', async () => {
  await using folder = await makeBackupFolder();
  await using home = await makeHome();
  writeFileSync(folder.file, '');
  const cases: [file: string, code: string][] = [
    [join(folder.file, 'below-a-file'), 'ENOTDIR'],
    [join(folder.path, 'a'.repeat(300)), 'ENAMETOOLONG'],
    [folder.path, 'EISDIR'],
  ];
  for (const [file, code] of cases) {
    expect(await runOn(home, 'restore', file)).toEqual({
      exit_code: 1,
      output: `${file} cannot be read (${code}): check that it exists and this user may read it.\n`,
    });
  }
}, 300_000);

test('backup: a file of the data directory that cannot be read is named in one sentence', async () => {
  await using folder = await makeBackupFolder();
  await using external = await openExternalDatabase();
  await using home = await makeHome({ DATABASE_URL: external.url });
  expect((await home.run({ command: commandFor('migrate') })).exit_code).toBe(0);
  // Root may read everything, so a file stands where a folder is expected, and a folder where a file is.
  const cases: [name: string, replace: (path: string) => void, unreadable: string, code: string][] = [
    ['objects', (path) => writeFileSync(path, ''), 'objects/storage-marks', 'ENOTDIR'],
    ['local-ca-key.pem', (path) => mkdirSync(path), 'local-ca-key.pem', 'EISDIR'],
    ['node-id', (path) => mkdirSync(path), 'node-id', 'EISDIR'],
  ];
  for (const [name, replace, unreadable, code] of cases) {
    const path = join(home.data_directory, name);
    rmSync(path, { recursive: true, force: true });
    replace(path);
    expect(await runOn(home, 'backup', folder.file)).toEqual({
      exit_code: 1,
      output: `${join(home.data_directory, unreadable)} cannot be read (${code}): check the data directory and its disk.\n`,
    });
  }
}, 300_000);
