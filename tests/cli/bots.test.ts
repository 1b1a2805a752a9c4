import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOM_SOURCE } from '../support/lobbies/room.ts';
import { readToEnd } from '../support/processes.ts';
import { makeProjectFolder } from '../support/project-folder.ts';
import { openTestService } from '../support/service.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const PROJECT =
  'build: {path: server.ts}\nmatchmaker: {max_players: 2, docker: {ports: {game: {port: 80, protocol: http}}}}';

const muster = shareService();
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-bots-'));
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

/** Deploys a server as a game. */
async function deploy(name: string, server: string, project = PROJECT) {
  const files = { 'server.ts': server, 'muster.yaml': `game: ${name}\n${project}` };
  const { run, start, openIn } = await makeProjectFolder(muster, home, { name, files });
  expect(await run('deploy')).toMatchObject({
    exit_code: 0,
    stderr: expect.stringContaining('a lobby of the version was ready after'),
  });
  return Object.assign((...args: string[]) => run('bots', ...args, '--game', name), { run, start, openIn });
}

/** Passes requests on to a service, except those whose path ends with a text, which get a refusal. */
function openFailingService(url: string, { path, status, code }: { path: string; status: number; code: string }) {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      if (pathname.endsWith(path)) {
        return Response.json({ code, message: 'Refused.', ray_id: crypto.randomUUID() }, { status });
      }
      const { method, headers } = request;
      return await fetch(`${url}${pathname}${search}`, { method, headers, body: await request.arrayBuffer() });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.asyncDispose]: () => server.stop(true) };
}

test('bots: find seats, connect and leave, and the command writes their figures', async () => {
  const bots = await deploy('played', ROOM_SOURCE);
  const { exit_code, stdout } = await bots('5', '--for', '15s', '--json');
  const { seats, connected, find_p95_ms, ...others } = JSON.parse(stdout);
  expect([exit_code, others]).toEqual([0, expect.objectContaining({ without_port: 0, refusals: [], faults: [] })]);
  expect(seats).toBeGreaterThanOrEqual(5);
  expect(connected).toBeGreaterThanOrEqual(5);
  expect(find_p95_ms).toBeGreaterThan(0);
}, 300_000);

test('bots: ctrl-C and SIGTERM end them before their time, and the command writes their figures until then', async () => {
  const { openIn, start, run } = await deploy('stopped', ROOM_SOURCE);
  const args = ['bots', '2', '--for', '10m', '--game', 'stopped'];
  const typed = openIn(args);
  await waitFor(() => /[1-9]\d* connected/.test(typed.output()), 'a bot to connect');
  typed.pressCtrlC();
  expect(await typed.exited).toBe(130);
  expect(typed.output()).toMatch(/seats +[1-9]\d*, found in .*\s+connected +[1-9]\d*\r\nStopped\./);

  const terminated = start([...args, '--json']);
  const havePlayers = async () =>
    JSON.parse((await run('players', '--game', 'stopped', '--json')).stdout).players.length > 0;
  await waitFor(havePlayers, 'the bots to play');
  terminated.kill('SIGTERM');
  const { exit_code, stdout, stderr } = await readToEnd(terminated);
  expect(exit_code).toBe(130);
  expect(JSON.parse(stdout)).toMatchObject({ seats: expect.any(Number), connected: expect.any(Number), faults: [] });
  expect(JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '')).toEqual({
    error: { exit_code: 130, message: 'Stopped.' },
  });
}, 300_000);

test('bots: a port for UDP gets no WebSocket, and is no fault of the server', async () => {
  const server = `
    const { SERVICE_API_ENDPOINT, SERVICE_TOKEN, PORT_game } = process.env;
    const socket = require('node:dgram').createSocket('udp4').bind(Number(PORT_game));
    require('node:net').createServer((one) => console.log('a connection') ?? one.destroy()).listen(Number(PORT_game));
    const headers = { authorization: 'Bearer ' + SERVICE_TOKEN };
    await fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', { method: 'POST', headers });`;
  const bots = await deploy('datagrams', server, PROJECT.replace('http}', 'udp}'));
  const { exit_code, stdout } = await bots('2', '--for', '2s', '--json');
  const { seats, ...others } = JSON.parse(stdout);
  expect([exit_code, others]).toEqual([0, expect.objectContaining({ connected: 0, without_port: seats, faults: [] })]);
}, 300_000);

test('bots: solve the proof of work of a version, as its deploy does', async () => {
  const captcha = 'captcha: {requests_before_reverify: 1, verification_ttl: 60000, pow: {difficulty: 2}}';
  const project = PROJECT.replace('max_players: 2', `max_players: 2, ${captcha}`);
  const bots = await deploy('proving', ROOM_SOURCE, project);
  const { exit_code, stdout } = await bots('3', '--for', '4s', '--json');
  const { seats, ...others } = JSON.parse(stdout);
  expect([exit_code, others]).toEqual([0, expect.objectContaining({ refusals: [], faults: [] })]);
  // More requests than one captcha admits.
  expect(seats).toBeGreaterThanOrEqual(3);
}, 300_000);

test('bots: the command fails if the server refuses players', async () => {
  const refusing = ROOM_SOURCE.replace('if (tokens.has(player_token))', 'if (true)');
  const bots = await deploy('refusing', refusing);
  const { exit_code, stdout, stderr } = await bots('2', '--for', '2s');
  expect([exit_code, stdout]).toEqual([1, expect.stringMatching(/fault +\d+ × a seat without a connection/)]);
  expect(stderr).toContain('Faults: a seat without a connection (the game server refused the WebSocket).');
}, 300_000);

test('bots: a refused find is not a fault, and is shown with its code and ray id; without a seat, the command fails', async () => {
  const deployed = await deploy('full', ROOM_SOURCE);
  const refusal = { path: '/matchmaker/lobbies/find', status: 400, code: 'MATCHMAKER_LOBBY_CLOSED' };
  await using refusing = openFailingService(muster.config.public_url, refusal);
  const bots = (...args: string[]) => deployed(...args, '--url', refusing.url);
  const { exit_code, stdout, stderr } = await bots('2', '--for', '2s');
  expect([exit_code, stdout]).toEqual([1, expect.stringMatching(/refused +\d+ × \S+: muster why [0-9a-f-]{36}/)]);
  expect(stderr).toMatch(/No bot got a seat: the finds were refused \(\S+\)\./);
  // Without a seat, there are no times of finds.
  expect(stdout).toMatch(/^seats +0\nconnected /);
  const as_json = await bots('1', '--for', '1s', '--json');
  expect(Object.keys(JSON.parse(as_json.stdout)).toSorted()).toEqual(
    'connected, faults, refusals, seats, without_port'.split(', '),
  );
}, 300_000);

test('bots: an unknown game mode and other wrong options are refused before a bot plays', async () => {
  const bots = await deploy('unknowing', ROOM_SOURCE);
  const unknown = await bots('1', '--mode', 'nope', '--for', '2s');
  expect([unknown.exit_code, unknown.stdout, unknown.stderr]).toEqual([
    4,
    '',
    'The live version has no game mode "nope"; it has: default.\n',
  ]);
  for (const wrong of ['0', 'many', '1001']) expect(await bots(wrong)).toMatchObject({ exit_code: 2 });
  for (const wrong of ['ever', '0s']) expect(await bots('1', '--for', wrong)).toMatchObject({ exit_code: 2 });
}, 300_000);

test('bots: a find that the service fails to answer is a fault', async () => {
  const bots = await deploy('failing', ROOM_SOURCE);
  // As if the service had a bug.
  const failure = { path: '/matchmaker/lobbies/find', status: 500, code: 'ERROR' };
  await using failing = openFailingService(muster.config.public_url, failure);
  const { exit_code, stdout } = await bots('1', '--for', '2s', '--url', failing.url, '--json');
  const fault = expect.objectContaining({ what: expect.stringContaining('a find without an answer') });
  expect([exit_code, JSON.parse(stdout)]).toEqual([1, expect.objectContaining({ faults: [fault] })]);
}, 300_000);

test('bots: their figures are shown if the lobbies cannot be read, for some time or any more', async () => {
  const bots = await deploy('unchecked', ROOM_SOURCE);
  const path = '/analytics/matchmaker/live';
  const url = muster.config.public_url;
  await using away = openFailingService(url, { path, status: 503, code: 'API_UNAVAILABLE' });
  const passed = await bots('1', '--for', '4s', '--url', away.url, '--json');
  expect([passed.exit_code, JSON.parse(passed.stdout)]).toEqual([0, expect.objectContaining({ faults: [] })]);
  expect(JSON.parse(passed.stdout).connected).toBeGreaterThanOrEqual(1);
  await using revoked = openFailingService(url, { path, status: 403, code: 'TOKEN_REVOKED' });
  const ended = await bots('1', '--for', '4s', '--url', revoked.url, '--json');
  expect([ended.exit_code, JSON.parse(ended.stdout)]).toEqual([3, expect.objectContaining({ faults: [] })]);
}, 300_000);

test('bots: a lobby that players of a link fill up to its direct maximum is not over-filled', async () => {
  const project = PROJECT.replace('max_players: 2', 'max_players: 1, max_players_direct: 4');
  const bots = await deploy('direct', ROOM_SOURCE, project);
  const playing = bots('1', '--for', '8s', '--json');
  const token = (await bots.run('tokens', 'create', 'public', '--game', 'direct')).stdout.trim();
  const lobby_id = await waitFor(async () => {
    const { lobbies } = JSON.parse((await bots.run('lobbies', '--game', 'direct', '--json')).stdout);
    return lobbies.find(({ is_ready }: { is_ready: boolean }) => is_ready)?.lobby_id as string | undefined;
  }, 'the lobby of the bot');
  for (let seat = 0; seat < 2; seat += 1)
    await muster.api.ok('POST', '/matchmaker/lobbies/join', { token, body: { lobby_id } });
  const { exit_code, stdout } = await playing;
  expect([exit_code, JSON.parse(stdout).faults]).toEqual([0, []]);
}, 300_000);

test('bots: lobbies that are closed, and another version that goes live, are no fault while no find seats there', async () => {
  const bots = await deploy('changing', ROOM_SOURCE);
  const in_game = ['--game', 'changing', '--json'];
  const playing = bots('6', '--for', '8s', '--json');
  const running = await waitFor(async () => {
    const { lobbies } = JSON.parse((await bots.run('lobbies', ...in_game)).stdout);
    return lobbies.length > 1 && (lobbies as { lobby_id: string }[]);
  }, 'lobbies of the bots');
  for (const { lobby_id } of running) {
    expect(await bots.run('lobbies', 'close', lobby_id, ...in_game)).toMatchObject({ exit_code: 0 });
  }
  expect(await bots.run('deploy', '--no-check', '--message', 'another')).toMatchObject({ exit_code: 0 });
  const { exit_code, stdout } = await playing;
  expect([exit_code, JSON.parse(stdout).faults]).toEqual([0, []]);
}, 300_000);

test('bots: if the limits of one address refuse them, the command says what to do, and fails', async () => {
  await using limited = await openTestService({ MUSTER_LIMITS_SCALE: '1' });
  const files = { 'server.ts': ROOM_SOURCE, 'muster.yaml': `game: limited\n${PROJECT}` };
  const { run } = await makeProjectFolder(limited, home, { name: 'limited', files });
  expect(await run('deploy', '--no-check')).toMatchObject({ exit_code: 0 });
  const { exit_code, stdout, stderr } = await run('bots', '20', '--for', '15s');
  expect([exit_code, stdout]).toEqual([1, expect.stringMatching(/refused +\d+ × API_RATE_LIMIT\n/)]);
  expect(stdout).toMatch(/refused +\d+ × MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE: muster why [0-9a-f-]{36}\n/);
  expect(stderr).toContain('All bots come from one address');
  expect(stderr).toContain('MUSTER_LIMITS_SCALE');
  expect(stderr).toContain('max_players_per_client');
}, 300_000);
