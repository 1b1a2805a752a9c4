import { expect, test } from 'bun:test';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { $ } from 'bun';
import { sql } from 'drizzle-orm';
import { versionOf } from '../../.ci/version.ts';
import journal from '../../drizzle/meta/_journal.json' with { type: 'json' };
import manifest from '../../package.json' with { type: 'json' };
import { openDatabase } from '../../src/platform/database/database.ts';
import { migrateDatabase } from '../../src/platform/database/migrate.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { COMMAND, makeHome } from '../support/program.ts';
import { writeNextRelease } from '../support/releases.ts';

/** Creates a directory that is removed after the tests. */
async function makeDirectory() {
  const path = await mkdtemp(join(tmpdir(), 'muster-releases-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

test('migrations: an older program refuses the database of a newer one, names both releases, and changes nothing', async () => {
  await using external = await openExternalDatabase();
  await using folder = await makeDirectory();
  await using database = openDatabase({ url: external.url }, 2);
  await migrateDatabase(database);
  await writeNextRelease(folder.path);
  await migrateDatabase(database, { version: '98.7.6', folder: folder.path });
  const before = await database.queries.execute(sql`select id, created_at, release from migrations order by id`);
  expect(before.map(({ release }) => release)).toEqual([...journal.entries.map(() => manifest.version), '98.7.6']);

  await using home = await makeHome({ DATABASE_URL: external.url });
  for (const command of ['serve', 'migrate']) {
    const { exit_code, output } = await home.run({ command: [...COMMAND, command] });
    expect({ command, exit_code }).toEqual({ command, exit_code: 1 });
    expect(output).toMatch(
      /^The database was migrated by Muster 98\.7\.6, and this is the older Muster \S+: start 98\.7\.6 or a later release, or restore an older backup\.$/m,
    );
  }
  expect([
    ...(await database.queries.execute(sql`select id, created_at, release from migrations order by id`)),
  ]).toEqual([...before]);
}, 300_000);

test('build: its version is that of the tag, or the release with the commit, or the release', async () => {
  await using directory = await makeDirectory();
  const { path } = directory;
  expect(await versionOf(path, '')).toBe(manifest.version);
  expect(await versionOf(path, '1.2.3')).toBe('1.2.3');
  await expect(versionOf(path, 'newest')).rejects.toThrow('expected a version like 1.2.0');

  const git = (...command: string[]) =>
    $`git -c user.name=tests -c user.email=tests@localhost ${command}`.cwd(path).quiet();
  await git('init');
  await git('commit', '--allow-empty', '-m', 'first');
  const commit = (await git('rev-parse', '--short=8', 'HEAD')).stdout.toString().trim();
  expect(await versionOf(path, '')).toBe(`${manifest.version}-dev.g${commit}`);
  await git('tag', 'v2.0.0-rc.1');
  expect(await versionOf(path, '')).toBe('2.0.0-rc.1');
  await writeFile(join(path, 'new'), '');
  expect(await versionOf(path, '')).toBe(`${manifest.version}-dev.g${commit}.changed`);
});
