import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeUnreadable, listFiles, listLeftOut } from '../../src/cli/project/files.ts';
import { Failure } from '../../src/terminal/failure.ts';
import { refusalOf } from '../support/refusal.ts';

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-files-'));
});
afterAll(() => rm(home, { recursive: true, force: true }));

test('files: links to files and to directories are followed, as those of a package manager', async () => {
  const game = join(home, 'game');
  await Bun.write(join(game, 'server.js'), '1');
  await Bun.write(join(game, 'store/lib@1/index.js'), '22');
  await Bun.write(join(home, 'shared/icon.png'), '333');
  await mkdir(join(game, 'node_modules'));
  await symlink('../store/lib@1', join(game, 'node_modules/lib'));
  await symlink(join(home, 'shared'), join(game, 'assets'));
  await symlink('server.js', join(game, 'main.js'));
  await symlink('nowhere', join(game, 'broken'));
  await symlink(join(home, 'shared'), join(game, 'private'));
  await Bun.write(join(game, '.musterignore'), 'private/\n');
  const listed = listFiles(game);
  expect(listed.unreadable).toEqual(['broken']);
  expect(listed.files.map(({ path, bytes }) => [path, bytes])).toEqual([
    ['assets/icon.png', 3],
    ['main.js', 1],
    ['node_modules/lib/index.js', 2],
    ['server.js', 1],
    ['store/lib@1/index.js', 2],
  ]);
});

test('files: a name that is not UTF-8 is left out and named', async () => {
  const game = join(home, 'names');
  await Bun.write(join(game, 'server.js'), '1');
  await writeFile(Buffer.concat([Buffer.from(`${game}/f`), Buffer.from([0xff]), Buffer.from('.txt')]), '2');
  const { files, unreadable } = listFiles(game);
  expect([files.map(({ path }) => path), unreadable]).toEqual([['server.js'], ['f\ufffd.txt']]);
  expect(describeUnreadable(unreadable)).toContain('f\ufffd.txt');
  expect(describeUnreadable([])).toBeUndefined();
});

test('files: a link to a directory that holds it is refused by its name', async () => {
  const game = join(home, 'endless');
  await Bun.write(join(game, 'a/server.js'), '1');
  await symlink('..', join(game, 'a/again'));
  const { message, exit_code } = refusalOf(Failure, () => listFiles(game));
  expect([message, exit_code]).toEqual([expect.stringContaining('a/again is a link to a directory that holds it'), 2]);
  await Bun.write(join(game, '.musterignore'), 'again\n');
  expect(listFiles(game).files.map(({ path }) => path)).toEqual(['a/server.js']);
});

test("files: a service's data directory is left out, whatever its name", async () => {
  const game = join(home, 'with-data');
  for (const path of ['server.js', 'state/administrator-token', 'state/keys/one', 'lib/state.js']) {
    await Bun.write(join(game, path), '1');
  }
  const { files, secrets } = listFiles(game);
  expect([files.map(({ path }) => path), secrets]).toEqual([['lib/state.js', 'server.js'], []]);
});

test.each([
  ['listed', listFiles],
  ['an image', listLeftOut],
])("files: a folder that is a service's data directory itself is refused (%s)", async (_, list) => {
  const game = join(home, 'data');
  for (const path of ['index.html', 'administrator-token']) await Bun.write(join(game, path), '1');
  const { message, exit_code } = refusalOf(Failure, () => list(game));
  expect([message, exit_code]).toEqual([expect.stringContaining('is the data directory of a service'), 2]);
});

test('files: no line of .musterignore deploys what is never deployed', async () => {
  const game = join(home, 'overruling');
  for (const path of ['server.js', '.env', '.git/config', 'muster-data/keys/one'])
    await Bun.write(join(game, path), '1');
  await Bun.write(join(game, '.musterignore'), '!*\n!.*\n!muster-data\n');
  const { files, secrets } = listFiles(game);
  expect([files.map(({ path }) => path), secrets]).toEqual([['.env', 'server.js'], []]);
});
