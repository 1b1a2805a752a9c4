import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const yamlOf = (game: string) =>
  `game: ${game}\nbuild: {path: game/server.ts}\nmatchmaker: {docker: {ports: {game: {port: 80, protocol: http}}}}\n`;

const muster = shareService();
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-scripts-'));
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

test('deploy: a script is sent with the files and packages that it imports, and with no others', async () => {
  const files = {
    'muster.yaml': yamlOf('many-files'),
    'game/server.ts': `import { name } from './parts/name.ts';\nimport lib from 'lib';\nimport rules from '../rules.json';
console.log('it has', name satisfies string, lib.size, rules.round);\n${ROOM_SOURCE}`,
    'game/parts/name.ts': `export const name: string = 'parts';`,
    'game/parts/other.ts': `export const secret = 'never sent';`,
    'node_modules/lib/package.json': '{"name": "lib", "main": "main.js"}',
    'node_modules/lib/main.js': 'module.exports = { size: 7 };',
    'rules.json': '{"round": 3}',
  };
  const { folder, run } = await makeProjectFolder(muster, home, { name: 'many-files', files });
  const first = await run('deploy');
  expect([first.exit_code, first.stderr]).toEqual([
    0,
    expect.stringContaining('a lobby of the version was ready after'),
  ]);
  expect(first.stderr).toContain('bundle   server.ts and 3 files that it imports');
  await run('bots', '1', '--for', '2s');
  const log = await waitFor(async () => {
    const { stdout } = await run('logs', '--all');
    return stdout.includes('it has parts 7 3') && stdout;
  }, 'the line of the imports');
  expect(log).toContain('is ready at port');
  expect((await run('deploy')).stderr).toContain('not sent again');
  await Bun.write(join(folder, 'game/parts/name.ts'), `export const name: string = 'better parts';`);
  expect((await run('deploy', '--dry-run')).stderr).toContain('would be sent');
}, 300_000);

test('deploy: a script whose imports are missing, or are no code, is refused with their names', async () => {
  const REFUSED: [script: string, message: string][] = [
    [`import './gone.ts';`, 'game/server.ts:1: Could not resolve: "./gone.ts"'],
    [`import './broken.ts';`, 'game/broken.ts:2: '],
    [`import picture from './picture.png'; console.log(picture);`, 'imports files that are not code (picture-'],
  ];
  const files = { 'muster.yaml': yamlOf('refused'), 'game/broken.ts': '\nconst = 1;', 'game/picture.png': 'PNG' };
  const { folder, run } = await makeProjectFolder(muster, home, { name: 'refused', files });
  for (const [script, message] of REFUSED) {
    await Bun.write(join(folder, 'game/server.ts'), script);
    const { exit_code, stderr } = await run('deploy', '--no-check');
    expect([script, exit_code, stderr]).toEqual([script, 2, expect.stringContaining(message)]);
  }
}, 300_000);

test('deploy: an equal script of another name is sent, because the name says how it runs', async () => {
  const files = { 'muster.yaml': yamlOf('renamed'), 'game/server.ts': ROOM_SOURCE, 'game/room.ts': ROOM_SOURCE };
  const { folder, run } = await makeProjectFolder(muster, home, { name: 'renamed', files });
  expect(await run('deploy')).toMatchObject({ exit_code: 0, stderr: expect.stringContaining('build    server.ts,') });
  await Bun.write(join(folder, 'muster.yaml'), yamlOf('renamed').replace('server.ts', 'room.ts'));
  expect((await run('deploy', '--dry-run')).stderr).toContain('room.ts, ');
  expect(await run('deploy')).toMatchObject({ exit_code: 0, stderr: expect.stringContaining('build    room.ts,') });
}, 300_000);
