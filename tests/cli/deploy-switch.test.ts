import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const PROJECT =
  'build: {path: server.ts}\nmatchmaker: {max_players: 2, docker: {ports: {game: {port: 80, protocol: http}}}}';

const muster = shareService();
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-switch-'));
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

async function makeRoom(name: string) {
  const files = { 'server.ts': ROOM_SOURCE, 'muster.yaml': `game: ${name}\n${PROJECT}` };
  return await makeProjectFolder(muster, home, { name, files });
}

type Room = Awaited<ReturnType<typeof makeRoom>>;

/** Finds a seat in prod as a player. Returns the lobby. */
async function play({ run }: Room): Promise<string> {
  const token = (await run('tokens', 'create', 'public')).stdout.trim();
  const body = { game_modes: ['default'] };
  return (await muster.api.ok('POST', '/matchmaker/lobbies/find', { token, body })).lobby.lobby_id;
}

test('deploy: says how many lobbies run on other versions, and waits for their end with --wait', async () => {
  const room = await makeRoom('waiting');
  const first = await room.run('deploy', '--message', 'one', '--wait');
  expect(first).toMatchObject({ exit_code: 0, stderr: expect.stringContaining('No lobby runs on another version.') });
  const lobby_id = await play(room);

  const late = await room.run('deploy', '--message', 'other', '--wait', '1s');
  expect([late.exit_code, late.stdout]).toEqual([5, expect.stringContaining('one → other')]);
  expect(late.stderr).toContain('On other versions until they end: 1 lobby, 1 player. To undo: muster rollback prod\n');
  expect(late.stderr).toContain('The new version is live, but lobbies of other versions did not end in time.');
  expect(await room.liveVersion()).toBe('other');

  const waiting = room.start(['deploy', '--message', 'third', '--wait', '--json']);
  await waitFor(async () => (await room.liveVersion()) === 'third', 'the switch');
  expect(waiting.exitCode).toBeNull();
  expect((await room.run('lobbies', 'delete', lobby_id)).exit_code).toBe(0);
  expect(await waiting.exited).toBe(0);
  const answer = JSON.parse(await new Response(waiting.stdout).text());
  expect(answer.old_lobbies).toEqual({ lobbies: 1, players: 1 });

  expect(await room.run('rollback')).toMatchObject({ exit_code: 0, stderr: 'No lobby runs on another version.\n' });
}, 300_000);

test('deploy --detach: returns after the upload, and the check and the switch go on without the command', async () => {
  const room = await makeRoom('detached');
  const { exit_code, stdout, stderr } = await room.run('deploy', '--message', 'later', '--detach', '--json');
  const { detached } = JSON.parse(stdout);
  expect([exit_code, stderr]).toEqual([0, expect.stringContaining('server.ts')]);
  await waitFor(async () => (await room.liveVersion()) === 'later', 'the switch');
  const log = await waitFor(async () => {
    const text = await Bun.file(detached.log).text();
    return text.includes('To undo') && text;
  }, 'the end of its log');
  expect(log).toContain('a lobby of the version was ready after');
  expect(log).not.toContain(muster.administrator_token);

  // What is wrong with the files is still the exit code of the command; a lobby that does not become ready is in the log.
  await Bun.write(join(room.folder, 'server.ts'), `console.log('it begins'); process.exit(7);`);
  const broken = JSON.parse((await room.run('deploy', '--message', 'broken', '--detach', '--json')).stdout);
  await waitFor(async () => (await Bun.file(broken.detached.log).text()).includes('it begins'), 'the failure');
  expect(await room.liveVersion()).toBe('later');
  for (const { log: file } of [detached, broken.detached]) await rm(resolve(file, '..'), { recursive: true });
}, 300_000);

test('advice: an advised command acts on the service, game and namespace of the command before it', async () => {
  const { folder, run } = await makeRoom('advised');
  expect((await run('deploy')).exit_code).toBe(0);
  expect((await run('rollback', 'staging')).stderr).toContain('Deploy one: muster deploy staging\n');
  expect((await run('bots', '1', '--namespace', 'staging')).stderr).toContain('Deploy one: muster deploy staging\n');
  expect((await run('tokens', 'revoke')).stderr).toContain('To do it: muster tokens revoke --yes\n');
  // What a command takes without options is now another game.
  await Bun.write(join(folder, 'muster.yaml'), `game: another\n${PROJECT}`);
  const other_url = muster.config.public_url.replace('127.0.0.1', 'localhost');
  expect(other_url).not.toBe(muster.config.public_url);
  const ADVICE: [args: string[], advice: string][] = [
    [['rollback', 'staging', '--game', 'advised'], 'Deploy one: muster deploy staging --game advised\n'],
    [['tokens', 'revoke', '--game', 'advised'], 'To do it: muster tokens revoke --yes --game advised\n'],
    [['tokens', 'revoke', '--game', 'advised', '--url', other_url], `--game advised --url ${other_url}\n`],
  ];
  for (const [args, advice] of ADVICE) expect((await run(...args)).stderr).toContain(advice);
}, 300_000);

test('deploy --version: puts a namespace on the version that another has checked, from any folder', async () => {
  const room = await makeRoom('promoted');
  const tried = await room.run('deploy', 'staging', '--message', 'tried');
  expect([tried.exit_code, tried.stderr]).toEqual([0, expect.stringContaining('To undo: muster rollback staging\n')]);
  expect(await room.liveVersion()).not.toBe('tried');
  await rm(join(room.folder, 'muster.yaml'));
  const in_game = ['--game', 'promoted'];
  const promoted = await room.run('deploy', 'prod', '--version', 'tried', ...in_game);
  expect([promoted.exit_code, promoted.stdout]).toEqual([0, expect.stringContaining('→ tried')]);
  expect(promoted.stderr).not.toContain('build ');
  // Nothing else in this folder names the game.
  expect(promoted.stderr).toContain('To undo: muster rollback prod --game promoted\n');
  expect(await room.liveVersion()).toBe('tried');
  expect(await room.run('deploy', '--version', 'untried', ...in_game)).toMatchObject({ exit_code: 4 });
  for (const wrong of [['--message', 'x'], ['--dry-run']]) {
    expect(await room.run('deploy', '--version', 'tried', ...wrong, ...in_game)).toMatchObject({ exit_code: 2 });
  }
  expect(await room.run('deploy', '--wait', '--detach', ...in_game)).toMatchObject({ exit_code: 2 });
  expect(await room.run('deploy', '--version', 'tried', '--wait', 'long', ...in_game)).toMatchObject({ exit_code: 2 });
}, 300_000);
