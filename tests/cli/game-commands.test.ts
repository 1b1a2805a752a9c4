import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { find, makeControlledGame } from '../support/game-server.ts';
import { READY_SOURCE } from '../support/lobbies/room.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const PROJECT =
  'build: {path: server.ts}\nmatchmaker: {max_players: 2, docker: {ports: {game: {port: 80, protocol: http}}}}';

const muster = shareService();
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-commands-'));
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

test('versions and builds of the game that the folder names: are listed, shown and compared', async () => {
  const files = { 'server.ts': '// nothing', 'muster.yaml': `game: compared\n${PROJECT}` };
  const { folder, run } = await makeProjectFolder(muster, home, { name: 'compared', files });
  await run('deploy', '--no-check', '--message', 'one');
  await Bun.write(join(folder, 'muster.yaml'), `game: compared\n${PROJECT.replace('2', '8')}`);
  await run('deploy', '--no-check', '--message', 'other');

  expect((await run('versions')).stdout).toMatch(/^VERSION +LIVE IN.*\nother +prod .*\none +- /);
  expect(await run('versions', 'diff', 'one', 'other')).toEqual({
    exit_code: 0,
    stderr: '',
    stdout: '- matchmaker.max_players: 2\n+ matchmaker.max_players: 8\n',
  });
  const modes = PROJECT.replace('max_players: 2', 'max_players: 8, game_modes: {default: {}, ranked: {}}');
  await Bun.write(join(folder, 'muster.yaml'), `game: compared\n${modes}`);
  await run('deploy', 'staging', '--no-check', '--message', 'more modes');
  expect(await run('versions', 'diff', 'other', 'more modes')).toEqual({
    exit_code: 0,
    stderr: '',
    stdout: '+ matchmaker.game_modes.ranked: {}\n',
  });
  expect(await run('versions', 'diff', 'one', 'one')).toMatchObject({ exit_code: 0, stdout: '' });
  const shown = await run('versions', 'show', 'other', '--json');
  expect(JSON.parse(shown.stdout).version.config.matchmaker.max_players).toBe(8);
  expect(await run('versions', 'show', 'another')).toMatchObject({ exit_code: 4 });
  const { builds } = JSON.parse((await run('builds', '--json')).stdout);
  expect(builds).toEqual([expect.objectContaining({ complete: true })]);
  expect((await run('builds')).stdout).toContain('complete');
}, 300_000);

test('players and exports: who has a seat, and links that can be downloaded', async () => {
  const game = await makeControlledGame(muster);
  const { run } = await makeProjectFolder(muster, home, { name: 'exported', files: { 'a.txt': '' } });
  const in_game = ['--game', game.game_id];
  expect(await run('players', ...in_game)).toMatchObject({
    exit_code: 0,
    stdout: '',
    stderr: 'No player has a seat here.\n',
  });
  const { lobby } = (await find(muster, game)).body;
  const { players } = JSON.parse((await run('players', '--json', ...in_game)).stdout);
  expect(players).toEqual([expect.objectContaining({ lobby_id: lobby.lobby_id, player_id: expect.any(String) })]);
  expect((await run('players', ...in_game)).stdout).toMatch(/^PLAYER .*\n[0-9a-f]{12} +[0-9a-f]{12} +reserved /);

  const history = (await run('exports', 'lobbies', ...in_game)).stdout.trim();
  expect(await (await fetch(history)).text()).toContain(lobby.lobby_id);
  const { servers } = JSON.parse((await run('servers', '--json', ...in_game)).stdout);
  for (const more of [[], ['--errors']]) {
    const { stdout } = await run('exports', 'log', servers[0].id, ...more, ...in_game);
    expect((await fetch(stdout.trim())).status).toBe(200);
  }
  expect(await run('exports', 'lobbies', '--since', 'ever', ...in_game)).toMatchObject({ exit_code: 2 });
  expect(await run('exports', 'log', crypto.randomUUID(), ...in_game)).toMatchObject({ exit_code: 4 });
}, 300_000);

test('servers: a range of ports is listed with its first and last port', async () => {
  const ports = { voice: { port_range: { min: 28_071, max: 28_080 }, protocol: 'udp', proxy: 'none' } };
  const game = await makeControlledGame(muster, { source: READY_SOURCE, network_mode: 'host', ports });
  expect((await find(muster, game)).status).toBe(200);
  const { run } = await makeProjectFolder(muster, home, { name: 'ranges', files: { 'a.txt': '' } });
  expect((await run('servers', '--game', game.game_id)).stdout).toContain(' voice:28071-28080/udp ');
}, 300_000);

test('tokens: are created for clients, tools and back ends, inspected, and revoked only with --yes', async () => {
  const { run } = await makeProjectFolder(muster, home, { name: 'keys', files: { 'a.txt': '' } });
  await run('api', 'get', '/cloud/games');
  const { base_url } = muster.api;
  const { game_id, namespace_id } = await makeControlledGame(muster);
  const in_game = ['--game', game_id];
  const create = async (kind: string) => (await run('tokens', 'create', kind, ...in_game)).stdout.trim();
  const [client, tool, back_end] = [await create('public'), await create('cloud'), await create('service')];
  const statusOf = async (path: string, token: string) =>
    (await fetch(`${base_url}${path}`, { headers: { authorization: `Bearer ${token}` } })).status;
  const servers = `/games/${game_id}/environments/${namespace_id}/servers`;
  expect(await statusOf('/matchmaker/lobbies/list', client)).toBe(200);
  expect(await statusOf(servers, back_end)).toBe(200);
  // A cloud token has no namespace.
  expect(await run('tokens', 'create', 'cloud', ...in_game, '--namespace', 'nowhere')).toMatchObject({ exit_code: 0 });
  expect((await run('tokens', 'inspect', '--token', tool, ...in_game)).stdout).toContain(game_id);

  expect(await run('tokens', 'revoke', ...in_game)).toMatchObject({
    exit_code: 2,
    stderr: expect.stringContaining('--yes'),
  });
  expect(await statusOf(servers, back_end)).toBe(200);
  expect(await run('tokens', 'revoke', '--yes', ...in_game)).toMatchObject({ exit_code: 0 });
  await waitFor(async () => (await statusOf(servers, back_end)) === 403, 'the token to be revoked');
  expect(await statusOf('/matchmaker/lobbies/list', client)).toBe(200);
  expect(await run('tokens', 'create', 'golden', ...in_game)).toMatchObject({ exit_code: 2 });
}, 300_000);

test('complete: suggests commands and the ids of lobbies, and writes scripts for shells', async () => {
  const game = await makeControlledGame(muster);
  const { body } = await find(muster, game);
  const files = { 'a.txt': '' };
  const { folder, run } = await makeProjectFolder(muster, home, { name: 'completed', files });
  expect((await run('complete', '--', 'lob')).stdout).toContain('lobbies\t');
  expect((await run('complete', '--', 'lobbies', 'sh')).stdout).toContain('show\t');
  // The service has several games: an option names one, or the profile does. The service may be slow for a shell.
  const suggestions = (...line: string[]) =>
    waitFor(
      async () => {
        const { stdout } = await run('complete', '--', ...line);
        return stdout.includes('\t') && stdout;
      },
      `suggestions for ${line.join(' ')}`,
    );
  const typed = ['--game', game.game_id];
  expect(await suggestions('lobbies', 'show', ...typed, '')).toContain(`${body.lobby.lobby_id}\t`);
  expect(await suggestions('lobbies', 'close', ...typed, '')).toContain(`${body.lobby.lobby_id}\t`);
  expect(await suggestions('logs', ...typed, '--lobby', '')).toContain(`${body.lobby.lobby_id}\t`);
  expect(await suggestions('status', ...typed, '--namespace', 'pr')).toContain('prod\t');
  expect(await suggestions('versions', 'diff', ...typed, '0')).toContain('0.0.1\t');
  const { games } = JSON.parse((await run('api', 'GET', '/cloud/games')).stdout);
  expect(await suggestions('status', '--game', '')).toContain(`${games[0].name_id}\t`);
  expect((await run('use', muster.config.public_url, '--game', game.game_id)).exit_code).toBe(0);
  expect(await suggestions('lobbies', 'show', '')).toContain(body.lobby.lobby_id);
  const script = await run('complete', 'bash');
  await Bun.write(join(folder, 'complete.sh'), script.stdout);
  const shell = Bun.spawnSync(['bash', '-c', 'source ./complete.sh && complete -p muster'], { cwd: folder });
  expect([shell.exitCode, shell.stdout.toString()]).toEqual([0, expect.stringContaining('muster')]);
  for (const name of ['zsh', 'fish']) expect((await run('complete', name)).stdout).toContain('muster complete');
  expect(await run('complete', 'tcsh')).toMatchObject({ exit_code: 2 });
}, 300_000);
