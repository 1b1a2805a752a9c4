import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openForwardProxy } from '../support/forward-proxy.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { shareService } from '../support/suite.ts';
import { waitForOutput } from '../support/terminal.ts';
import { waitFor } from '../support/wait.ts';

const ROOM = resolve(import.meta.dir, '../../examples/room.ts');
const MIB = 1024 ** 2;
/** Parts have 8 MiB, and four are sent at once. */
const PARTS = 6;

const muster = shareService();
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-uploads-'));
}, 90_000);
afterAll(() => rm(home, { recursive: true, force: true }));

/** Returns the room as a large script, which tells a player without a seat its name. */
async function makeServer(name: string, parts = PARTS): Promise<string> {
  const room = (await Bun.file(ROOM).text()).replace("'no seat'", `'no seat in ${name}'`);
  return `${room}\n//${name.repeat(((parts - 0.5) * MIB * 8) / name.length)}`;
}

const projectOf = (game: string) => `game: ${game}
build: {path: server.ts}
matchmaker: {docker: {ports: {game: {port: 80, protocol: http}}}}
`;

type Folder = Awaited<ReturnType<typeof makeProjectFolder>>;

/** Returns the name that the server of a namespace has. */
async function readName({ run }: Folder, game: string, namespace: string): Promise<string> {
  const at = ['--game', game, '--namespace', namespace];
  const token = (await run('tokens', 'create', 'public', ...at)).data.trim();
  const { ports } = await muster.api.ok('POST', '/matchmaker/lobbies/find', {
    token,
    body: { game_modes: ['default'] },
  });
  const { hostname, port } = ports.game;
  return (await (await fetch(`http://${hostname}:${port}/`)).text()).replace('no seat in ', '');
}

test('deploy: killed in the middle of an upload, it goes on with the parts that are missing', async () => {
  await using proxy = await openForwardProxy();
  const files = { 'server.ts': await makeServer('resumed'), 'muster.yaml': projectOf('resumed') };
  const folder = await makeProjectFolder(muster, home, { name: 'resumed', files });
  proxy.holdUploadsAfter(2);
  const killed = folder.start(['deploy'], { HTTP_PROXY: proxy.url });
  await waitFor(() => proxy.upload_count === 2 && proxy.held_count === 4, 'two parts to arrive, and four to be held');
  killed.kill('SIGKILL');
  await killed.exited;
  expect(JSON.parse((await folder.run('builds', '--game', 'resumed', '--json')).data).builds).toMatchObject([
    { complete: false },
  ]);

  proxy.release();
  const again = folder.start(['deploy'], { HTTP_PROXY: proxy.url });
  const words = await new Response(again.stderr).text();
  expect([await again.exited, words]).toEqual([0, expect.stringContaining('of it sent now, the rest was there)')]);
  expect(proxy.upload_count).toBe(PARTS);
  expect(words).not.toMatch(/█|%/);
  expect(JSON.parse((await folder.run('builds', '--game', 'resumed', '--json')).data).builds).toMatchObject([
    { complete: true },
  ]);
  expect(await readName(folder, 'resumed', 'prod')).toBe('resumed');
}, 90_000);

test('deploy: an upload that was interrupted for one namespace continues for another', async () => {
  await using proxy = await openForwardProxy();
  const files = { 'server.ts': await makeServer('moved', 3), 'muster.yaml': projectOf('moved') };
  const folder = await makeProjectFolder(muster, home, { name: 'moved', files });
  proxy.holdUploadsAfter(1);
  const killed = folder.start(['deploy'], { HTTP_PROXY: proxy.url });
  await waitFor(() => proxy.upload_count === 1 && proxy.held_count === 2, 'a part to arrive, and two to be held');
  killed.kill('SIGKILL');
  await killed.exited;
  const { exit_code, words } = await folder.run('deploy', 'staging');
  expect([exit_code, words]).toEqual([0, expect.stringContaining('of it sent now, the rest was there)')]);
  expect(JSON.parse((await folder.run('builds', '--game', 'moved', '--json')).data).builds).toHaveLength(1);
  expect(await readName(folder, 'moved', 'staging')).toBe('moved');
}, 90_000);

test('deploy: a changed server does not continue the upload of the one before', async () => {
  await using proxy = await openForwardProxy();
  const files = { 'server.ts': await makeServer('before'), 'muster.yaml': projectOf('changed') };
  const folder = await makeProjectFolder(muster, home, { name: 'changed', files });
  proxy.holdUploadsAfter(2);
  const killed = folder.start(['deploy'], { HTTP_PROXY: proxy.url });
  await waitFor(() => proxy.upload_count === 2 && proxy.held_count === 4, 'two parts to arrive, and four to be held');
  killed.kill('SIGKILL');
  await killed.exited;
  // Of the same length.
  await Bun.write(join(folder.folder, 'server.ts'), await makeServer('behind'));
  expect((await folder.run('deploy')).exit_code).toBe(0);
  expect(await readName(folder, 'changed', 'prod')).toBe('behind');
}, 90_000);

test('deploy: two deploys at once with the same files make one complete build; with other files, each has its own', async () => {
  const files = { 'server.ts': await makeServer('same', 3), 'muster.yaml': projectOf('mixed') };
  const one = await makeProjectFolder(muster, home, { name: 'mixed', files });
  const other = await makeProjectFolder(muster, home, { name: 'mixed-too', files });
  await one.run('deploy', '--no-check', '--dry-run');
  const both = await Promise.all([one.run('deploy'), other.run('deploy', 'staging')]);
  for (const { exit_code, words } of both) expect([exit_code, words]).toEqual([0, expect.any(String)]);
  expect([await readName(one, 'mixed', 'prod'), await readName(one, 'mixed', 'staging')]).toEqual(['same', 'same']);

  await Bun.write(join(one.folder, 'server.ts'), await makeServer('left_', 3));
  await Bun.write(join(other.folder, 'server.ts'), await makeServer('right', 3));
  const mixed = await Promise.all([one.run('deploy'), other.run('deploy', 'staging')]);
  for (const { exit_code, words } of mixed) expect([exit_code, words]).toEqual([0, expect.any(String)]);
  await Promise.all(['prod', 'staging'].map((namespace) => endLobbies(one, namespace)));
  expect([await readName(one, 'mixed', 'prod'), await readName(one, 'mixed', 'staging')]).toEqual(['left_', 'right']);
}, 90_000);

async function endLobbies({ run }: Folder, namespace: string): Promise<void> {
  const at = ['--game', 'mixed', '--namespace', namespace];
  const { lobbies } = JSON.parse((await run('lobbies', ...at, '--json')).data);
  for (const { lobby_id } of lobbies) await run('lobbies', 'delete', lobby_id, ...at);
}

test('deploy: a deploy whose upload another deploy has completed meanwhile uses that build', async () => {
  await using proxy = await openForwardProxy();
  const files = { 'server.ts': await makeServer('overtaken'), 'muster.yaml': projectOf('overtaken') };
  const folder = await makeProjectFolder(muster, home, { name: 'overtaken', files });
  proxy.holdUploadsAfter(2);
  const slow = folder.openIn(['deploy'], { HTTP_PROXY: proxy.url });
  await waitFor(() => proxy.upload_count === 2 && proxy.held_count === 4, 'two parts to arrive, and four to be held');
  await waitForOutput(slow, '36 %  16.8 MB of 46.1 MB');
  expect((await folder.run('deploy', '--message', 'fast')).exit_code).toBe(0);
  // The held parts are sent again.
  proxy.release();
  proxy.refuseHeld();
  expect([await slow.exited, slow.output()]).toEqual([0, expect.any(String)]);
  expect(JSON.parse((await folder.run('builds', '--game', 'overtaken', '--json')).data).builds).toHaveLength(1);
}, 90_000);

test('deploy: a file of a site that is removed or changed while it is sent ends the upload at once, and is named', async () => {
  const CHANGES: [name: string, change: (file: string) => Promise<unknown>, words: string][] = [
    ['removed', (file) => rm(file), 'was removed while it was read'],
    ['shortened', (file) => truncate(file, 1), 'changed while it was sent'],
  ];
  for (const [name, change, words] of CHANGES) {
    await using proxy = await openForwardProxy();
    const paths = Array.from({ length: PARTS }, (_, index) => `public/${index}.js`);
    const site = Object.fromEntries(paths.map((path) => [path, `the code of ${path}`]));
    const files = { ...site, 'muster.yaml': `game: ${name}\nsite: public\n` };
    const folder = await makeProjectFolder(muster, home, { name, files });
    proxy.holdUploadsAfter(0);
    const deploying = folder.start(['deploy'], { HTTP_PROXY: proxy.url });
    await waitFor(() => proxy.held_count === 4, 'the first parts to be held');
    for (const path of paths) await change(join(folder.folder, path));
    proxy.release();
    proxy.refuseHeld();
    const stderr = await new Response(deploying.stderr).text();
    expect([await deploying.exited, stderr]).toEqual([1, expect.stringMatching(new RegExp(`\\d\\.js ${words}`))]);
  }
}, 90_000);

test('deploy: only changed files of a site are sent', async () => {
  await using proxy = await openForwardProxy();
  const files = { 'public/index.html': 'the game', 'public/a.js': '1', 'public/b.js': '2' };
  const yaml = { 'muster.yaml': 'game: changing\nsite: public\n' };
  const folder = await makeProjectFolder(muster, home, { name: 'changing', files: { ...files, ...yaml } });
  const deploy = async () => {
    const child = folder.start(['deploy', '--json'], { HTTP_PROXY: proxy.url });
    const [data, words] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    expect([await child.exited, words]).toEqual([0, expect.any(String)]);
    return { words, name: JSON.parse(data).game };
  };
  const { words, name } = await deploy();
  expect(words).toContain('site     3 files, 3 new');
  await Bun.write(join(folder.folder, 'public/a.js'), '3');
  expect((await deploy()).words).toContain('site     3 files, 1 new');
  expect(proxy.upload_count).toBe(4);
  expect((await deploy()).words).toContain('site     the same as before');
  const address = `http://${name}.sites.localhost:${new URL(muster.config.public_url).port}`;
  const read = async (path: string) => await (await fetch(`${address}/${path}`)).text();
  expect([await read(''), await read('a.js'), await read('b.js')]).toEqual(['the game', '3', '2']);
}, 90_000);
