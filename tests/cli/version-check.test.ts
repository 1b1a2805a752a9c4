import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { readToEnd } from '../support/processes.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const PORTS = 'docker: {ports: {game: {port: 80, protocol: http}}}';
const NO_FIND = 'actions: {find: {enabled: false}}';

const muster = shareService();
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-check-'));
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

/** A folder whose game has a configuration of the matchmaker. */
async function makeFolder(name: string, matchmaker: string) {
  const files = { 'server.ts': ROOM_SOURCE, 'muster.yaml': yamlOf(name, matchmaker) };
  return await makeProjectFolder(muster, home, { name, files });
}

const yamlOf = (name: string, matchmaker: string) =>
  `game: ${name}\nbuild: {path: server.ts}\nmatchmaker: {${matchmaker}, ${PORTS}}\n`;

test('deploy: a version whose game modes need more than a find goes live, and says that it was not checked', async () => {
  const NEEDS: [name: string, actions: string, code: string][] = [
    ['no-find', NO_FIND, 'MATCHMAKER_FIND_DISABLED'],
    ['members', 'actions: {find: {enabled: true, identity_requirement: registered}}', 'MATCHMAKER_IDENTITY_REQUIRED'],
  ];
  for (const [name, actions, code] of NEEDS) {
    const { run, liveVersion } = await makeFolder(name, `game_modes: {ranked: {${actions}}}`);
    const { exit_code, stderr } = await run('deploy', '--message', 'mine');
    expect([stderr, exit_code]).toEqual([expect.stringContaining(`check    not possible, because`), 0]);
    expect(stderr).toContain(`(${code})`);
    expect(await liveVersion()).toBe('mine');
  }
}, 300_000);

test('deploy: a version is checked in the first game mode that takes finds', async () => {
  const { run } = await makeFolder('second-mode', `game_modes: {a: {${NO_FIND}}, b: {}}`);
  expect(await run('deploy')).toMatchObject({
    exit_code: 0,
    stderr: expect.stringContaining('a lobby of the version was ready after'),
  });
}, 300_000);

test('deploy: a check that the limits of the namespace refuse is shown as that refusal', async () => {
  const { folder, run, liveVersion } = await makeFolder('limited', 'max_players: 2');
  expect(await run('deploy', '--message', 'good')).toMatchObject({ exit_code: 0 });
  const token = muster.administrator_token;
  const { game } = await findGame('limited');
  const { namespace_id } = game.namespaces.find(({ name_id }: { name_id: string }) => name_id === 'deploy-check');
  const path = `/cloud/games/${game.game_id}/namespaces/${namespace_id}`;
  await muster.api.ok('POST', `${path}/mm-config`, { token, body: { lobby_count_max: 1, max_players: 8 } });
  // A player of another version holds the only lobby.
  const { version_id } = game.namespaces.find(({ name_id }: { name_id: string }) => name_id === 'prod');
  await muster.api.ok('PUT', `${path}/version`, { token, body: { version_id } });
  const player = (await muster.api.ok('POST', `${path}/tokens/public`, { token, body: {} })).token;
  await muster.api.ok('POST', '/matchmaker/lobbies/find', { token: player, body: { game_modes: ['default'] } });
  await Bun.write(join(folder, 'muster.yaml'), yamlOf('limited', 'max_players: 3'));
  const { exit_code, stderr } = await run('deploy', 'staging', '--message', 'untried');
  expect([exit_code, stderr]).toEqual([1, expect.stringContaining('could not be checked, so nothing was switched')]);
  expect(stderr).toContain('(MATCHMAKER_TOO_MANY_LOBBIES, ray ');
  expect(stderr).toMatch(/To switch without a check: muster deploy staging --version [0-9a-f-]{36} --no-check$/m);
  expect(stderr).not.toContain('Its log');
  expect(await liveVersion()).toBe('good');
}, 300_000);

test('deploy: no server of a checked version keeps running, also none of its idle lobbies', async () => {
  const { run } = await makeFolder('idle', 'max_players: 2, idle_lobbies: {min: 1, max: 2}');
  expect(await run('deploy')).toMatchObject({ exit_code: 0 });
  const lobbiesIn = async (namespace: string) =>
    JSON.parse((await run('lobbies', '--namespace', namespace, '--json')).stdout).lobbies.length;
  await waitFor(async () => (await lobbiesIn('prod')) === 1, 'the idle lobby that players get');
  await waitFor(async () => (await lobbiesIn('deploy-check')) === 0, 'the lobbies of the check to end');
  const { game } = await findGame('idle');
  const [first] = game.versions.toSorted((one: { create_ts: string }, other: { create_ts: string }) =>
    one.create_ts.localeCompare(other.create_ts),
  );
  const checked = game.namespaces.find(({ name_id }: { name_id: string }) => name_id === 'deploy-check');
  expect(checked.version_id).toBe(first.version_id);
}, 300_000);

test('deploy: ctrl-C and SIGTERM in the middle of a check end its lobby, and the version does not go live', async () => {
  const { folder, run, openIn, start, liveVersion } = await makeFolder('stopped', 'idle_lobbies: {min: 1, max: 2}');
  expect(await run('deploy', '--message', 'good')).toMatchObject({ exit_code: 0 });
  await Bun.write(join(folder, 'server.ts'), 'setInterval(() => {}, 1_000);');
  const in_check = ['--namespace', 'deploy-check', '--json'];
  const isBeingChecked = async () => JSON.parse((await run('servers', ...in_check)).stdout).servers.length > 0;
  const expectNothingLeft = async () => {
    expect(JSON.parse((await run('lobbies', ...in_check)).stdout).lobbies).toEqual([]);
    const status = JSON.parse((await run('status', ...in_check)).stdout);
    expect(status.version.display_name).toBe('0.0.1');
    await waitFor(async () => !(await isBeingChecked()), 'the server of the check to end');
    expect(await liveVersion()).toBe('good');
  };

  const typed = openIn(['deploy']);
  await waitFor(isBeingChecked, 'the check');
  typed.pressCtrlC();
  expect([await typed.exited, typed.output()]).toEqual([
    130,
    expect.stringContaining('Stopped. Nothing was switched.'),
  ]);
  await expectNothingLeft();

  const terminated = start(['deploy', '--json']);
  await waitFor(isBeingChecked, 'the check');
  terminated.kill('SIGTERM');
  const { exit_code, stderr } = await readToEnd(terminated);
  expect(exit_code).toBe(130);
  expect(JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '').error).toEqual({
    exit_code: 130,
    message: 'Stopped. Nothing was switched.',
  });
  await expectNothingLeft();
}, 300_000);

async function findGame(name: string) {
  const token = muster.administrator_token;
  const { games } = await muster.api.ok('GET', '/cloud/games', { token });
  const { game_id } = games.find(({ name_id }: { name_id: string }) => name_id === name);
  return await muster.api.ok('GET', `/cloud/games/${game_id}`, { token });
}
