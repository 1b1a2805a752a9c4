import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { openForwardProxy, through } from '../support/network/forward-proxy.ts';
import { readToEnd } from '../support/processes.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { shareService } from '../support/suite.ts';
import { waitForOutput } from '../support/terminal.ts';
import { waitFor } from '../support/wait.ts';

const MIB = 1024 ** 2;
/** Parts have 8 MiB, and four are sent at once. */
const PARTS = 6;

const muster = shareService();
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-uploads-'));
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

/** Returns the room as a large script, which tells a player without a seat its name. */
async function makeServer(name: string, parts = PARTS): Promise<string> {
  const room = ROOM_SOURCE.replace("'no seat'", `'no seat in ${name}'`);
  return `${room}\n//${name.repeat(((parts - 0.5) * MIB * 8) / name.length)}`;
}

const projectOf = (game: string) => `game: ${game}
build: {path: server.ts}
matchmaker: {docker: {ports: {game: {port: 80, protocol: http}}}}
`;

type Project = Awaited<ReturnType<typeof makeProjectFolder>>;

/** Returns the name that the server of a namespace has. */
async function readName({ run }: Project, game: string, namespace: string): Promise<string> {
  const in_namespace = ['--game', game, '--namespace', namespace];
  const token = (await run('tokens', 'create', 'public', ...in_namespace)).stdout.trim();
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
  const project = await makeProjectFolder(muster, home, { name: 'resumed', files });
  proxy.holdUploadsAfter(2);
  const killed = project.start(['deploy'], through(proxy));
  await waitFor(() => proxy.upload_count === 2 && proxy.held_count === 4, 'two parts to arrive, and four to be held');
  killed.kill('SIGKILL');
  await killed.exited;
  expect(JSON.parse((await project.run('builds', '--game', 'resumed', '--json')).stdout).builds).toMatchObject([
    { complete: false },
  ]);

  proxy.release();
  const { exit_code, stderr } = await readToEnd(project.start(['deploy'], through(proxy)));
  expect([exit_code, stderr]).toEqual([0, expect.stringContaining('of it sent now, the rest was there)')]);
  expect(proxy.upload_count).toBe(PARTS);
  expect(stderr).not.toMatch(/█|%/);
  expect(JSON.parse((await project.run('builds', '--game', 'resumed', '--json')).stdout).builds).toMatchObject([
    { complete: true },
  ]);
  expect(await readName(project, 'resumed', 'prod')).toBe('resumed');
}, 300_000);

test('deploy: an upload that was interrupted for one namespace continues for another', async () => {
  await using proxy = await openForwardProxy();
  const files = { 'server.ts': await makeServer('moved', 3), 'muster.yaml': projectOf('moved') };
  const project = await makeProjectFolder(muster, home, { name: 'moved', files });
  proxy.holdUploadsAfter(1);
  const killed = project.start(['deploy'], through(proxy));
  await waitFor(() => proxy.upload_count === 1 && proxy.held_count === 2, 'a part to arrive, and two to be held');
  killed.kill('SIGKILL');
  await killed.exited;
  const { exit_code, stderr } = await project.run('deploy', 'staging');
  expect([exit_code, stderr]).toEqual([0, expect.stringContaining('of it sent now, the rest was there)')]);
  expect(JSON.parse((await project.run('builds', '--game', 'moved', '--json')).stdout).builds).toHaveLength(1);
  expect(await readName(project, 'moved', 'staging')).toBe('moved');
}, 300_000);

test('deploy: a changed server does not continue the upload of the one before', async () => {
  await using proxy = await openForwardProxy();
  const files = { 'server.ts': await makeServer('before'), 'muster.yaml': projectOf('changed') };
  const project = await makeProjectFolder(muster, home, { name: 'changed', files });
  proxy.holdUploadsAfter(2);
  const killed = project.start(['deploy'], through(proxy));
  await waitFor(() => proxy.upload_count === 2 && proxy.held_count === 4, 'two parts to arrive, and four to be held');
  killed.kill('SIGKILL');
  await killed.exited;
  // Of the same length.
  await Bun.write(join(project.folder, 'server.ts'), await makeServer('behind'));
  expect((await project.run('deploy')).exit_code).toBe(0);
  expect(await readName(project, 'changed', 'prod')).toBe('behind');
}, 300_000);

test('deploy: two deploys at once with the same files make one complete build; with other files, each has its own', async () => {
  const files = { 'server.ts': await makeServer('same', 3), 'muster.yaml': projectOf('mixed') };
  const one = await makeProjectFolder(muster, home, { name: 'mixed', files });
  const other = await makeProjectFolder(muster, home, { name: 'mixed-too', files });
  await one.run('deploy', '--no-check', '--dry-run');
  const both = await Promise.all([one.run('deploy'), other.run('deploy', 'staging')]);
  for (const { exit_code, stderr } of both) expect([exit_code, stderr]).toEqual([0, expect.any(String)]);
  expect([await readName(one, 'mixed', 'prod'), await readName(one, 'mixed', 'staging')]).toEqual(['same', 'same']);

  await Bun.write(join(one.folder, 'server.ts'), await makeServer('left_', 3));
  await Bun.write(join(other.folder, 'server.ts'), await makeServer('right', 3));
  const mixed = await Promise.all([one.run('deploy'), other.run('deploy', 'staging')]);
  for (const { exit_code, stderr } of mixed) expect([exit_code, stderr]).toEqual([0, expect.any(String)]);
  await Promise.all(['prod', 'staging'].map((namespace) => endLobbies(one, namespace)));
  expect([await readName(one, 'mixed', 'prod'), await readName(one, 'mixed', 'staging')]).toEqual(['left_', 'right']);
}, 300_000);

async function endLobbies({ run }: Project, namespace: string): Promise<void> {
  const in_namespace = ['--game', 'mixed', '--namespace', namespace];
  const { lobbies } = JSON.parse((await run('lobbies', ...in_namespace, '--json')).stdout);
  for (const { lobby_id } of lobbies) await run('lobbies', 'delete', lobby_id, ...in_namespace);
}

test('deploy: a deploy whose upload another deploy has completed meanwhile uses that build', async () => {
  await using proxy = await openForwardProxy();
  const files = { 'server.ts': await makeServer('overtaken'), 'muster.yaml': projectOf('overtaken') };
  const project = await makeProjectFolder(muster, home, { name: 'overtaken', files });
  proxy.holdUploadsAfter(2);
  const slow = project.openIn(['deploy'], through(proxy));
  await waitFor(() => proxy.upload_count === 2 && proxy.held_count === 4, 'two parts to arrive, and four to be held');
  await waitForOutput(slow, '36 %  16.8 MB of 46.1 MB');
  expect((await project.run('deploy', '--message', 'fast')).exit_code).toBe(0);
  // The held parts are sent again.
  proxy.release();
  proxy.refuseHeld();
  expect([await slow.exited, slow.output()]).toEqual([0, expect.any(String)]);
  expect(JSON.parse((await project.run('builds', '--game', 'overtaken', '--json')).stdout).builds).toHaveLength(1);
}, 300_000);

test('deploy: a file of a site that is removed or changed while it is sent ends the upload at once, and is named', async () => {
  const CHANGES: [name: string, change: (file: string) => Promise<unknown>, message: string][] = [
    ['removed', (file) => rm(file), 'does not exist. If another program removed it meanwhile, try again'],
    ['shortened', (file) => truncate(file, 1), 'changed while it was sent'],
    // Of the same length.
    ['rewritten', (file) => Bun.write(file, 'new code of public/0.js'), 'changed while it was sent'],
  ];
  for (const [name, change, message] of CHANGES) {
    await using proxy = await openForwardProxy();
    const paths = Array.from({ length: PARTS }, (_, index) => `public/${index}.js`);
    const site = Object.fromEntries(paths.map((path) => [path, `old code of ${path}`]));
    const files = { ...site, 'muster.yaml': `game: ${name}\nsite: public\n` };
    const project = await makeProjectFolder(muster, home, { name, files });
    proxy.holdUploadsAfter(0);
    const deploying = project.start(['deploy'], through(proxy));
    await waitFor(() => proxy.held_count === 4, 'the first parts to be held');
    for (const path of paths) await change(join(project.folder, path));
    proxy.release();
    proxy.refuseHeld();
    const { exit_code, stderr } = await readToEnd(deploying);
    expect([exit_code, stderr]).toEqual([1, expect.stringMatching(new RegExp(`\\d\\.js ${message}`))]);
  }
}, 300_000);

test('deploy: a check of an upload that takes longer than one request is waited for', async () => {
  const code = (name: string) => JSON.stringify({ code: name, message: 'later' });
  const answers = [
    { status: 503, body: code('API_REQUEST_TIMEOUT') },
    { status: 504, body: 'the page of a proxy' },
    ...Array.from({ length: 4 }, () => ({ status: 503, body: code('UPLOAD_BUSY') })),
  ];
  await using proxy = await openForwardProxy({
    answerFor: ({ path }) => (path.endsWith('/complete') ? answers.shift() : undefined),
  });
  const files = { 'server.ts': ROOM_SOURCE, 'muster.yaml': projectOf('late') };
  const project = await makeProjectFolder(muster, home, { name: 'late', files });
  const { exit_code, stderr } = await readToEnd(project.start(['deploy', '--no-check'], through(proxy)));
  expect([exit_code, stderr]).toEqual([0, expect.stringContaining('build    server.ts')]);
  expect(answers).toEqual([]);
}, 300_000);

test('deploy: only changed files of a site are sent', async () => {
  await using proxy = await openForwardProxy();
  const files = { 'public/index.html': 'the game', 'public/a.js': '1', 'public/b.js': '2' };
  const yaml = { 'muster.yaml': 'game: changing\nsite: public\n' };
  const project = await makeProjectFolder(muster, home, { name: 'changing', files: { ...files, ...yaml } });
  const deploy = async () => {
    const child = project.start(['deploy', '--json'], through(proxy));
    const { exit_code, stdout, stderr } = await readToEnd(child);
    expect([exit_code, stderr]).toEqual([0, expect.any(String)]);
    return { stderr, name: JSON.parse(stdout).game };
  };
  const { stderr, name } = await deploy();
  expect(stderr).toContain('site     3 files, 3 new');
  await Bun.write(join(project.folder, 'public/a.js'), '3');
  expect((await deploy()).stderr).toContain('site     3 files, 1 new');
  expect(proxy.upload_count).toBe(4);
  expect((await deploy()).stderr).toContain('site     the same as before');
  const address = `http://${name}.sites.localhost:${new URL(muster.config.public_url).port}`;
  const read = async (path: string) => await (await fetch(`${address}/${path}`)).text();
  expect([await read(''), await read('a.js'), await read('b.js')]).toEqual(['the game', '3', '2']);
}, 300_000);
