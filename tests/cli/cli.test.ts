import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { makeGame, type TestGame } from '../support/game.ts';
import { connectGameServer, find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { findFreePort } from '../support/network/test-ports.ts';
import { makeMember } from '../support/people.ts';
import { readToEnd } from '../support/processes.ts';
import { COMMAND } from '../support/program.ts';
import { copyServer } from '../support/server-copies.ts';
import { STUBBORN, serversOf, uploadShell, waitForEndEvent } from '../support/servers.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService();
let game: TestGame;
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'muster-cli-'));
  game = await makeControlledGame(muster);
}, 300_000);
afterAll(() => rm(home, { recursive: true, force: true }));

interface Run {
  env?: Record<string, string>;
  stdin?: string;
}

/** Starts a command without a terminal, in an empty folder, as a user with a home of their own. */
function start(args: string[], { env = {}, stdin = '' }: Run = {}) {
  const own = { PATH: process.env.PATH ?? '', HOME: home, XDG_CONFIG_HOME: join(home, 'config'), ...env };
  return Bun.spawn([...COMMAND, ...args], {
    cwd: home,
    env: own,
    stdin: new Blob([stdin]),
    stdout: 'pipe',
    stderr: 'pipe',
  });
}

async function run(args: string[], options: Run = {}) {
  const child = start(args, options);
  return await readToEnd(child);
}

const developer = () => ({ MUSTER_URL: muster.config.public_url, MUSTER_TOKEN: game.cloud_token });

describe('commands: fail with an exit code and a message:', () => {
  test('2 for a wrong use, with a suggestion', async () => {
    const WRONG: [args: string[], message: string][] = [
      [['lobies'], '(Did you mean lobbies?)'],
      [['lobbies', 'lst'], '(Did you mean list?)'],
      [['status', '--jsn'], '(Did you mean --json?)'],
      [['why'], "missing required argument 'ray'"],
      [['logs', '--since', 'yesterday'], '--since is "yesterday": write 30s, 10m'],
      [['logs', '--since', '10'], '--since is "10": write 30s, 10m'],
      [['api', 'GET', '/matchmaker/regions', '--data', '{}'], 'A GET has no body: leave out --data.'],
      [['api', 'FETCH', '/'], '"FETCH" is not one of GET, POST'],
      [['status', '--url', 'nowhere'], '"nowhere" is not an address such as'],
      [['status', '--url', 'localhost:8080'], '"localhost:8080" is not an address such as'],
      [['logs', 'abc', '--all'], 'Name one server or lobby, or write --all.'],
      [['logs', '--server', 'a', '--lobby', 'b'], 'Name one server or lobby, or write --all.'],
      [['lobbies', 'watch', '--count', '0'], '--count is "0": write 1 to 200.'],
      [['deploy', 'prod', '--namespace', 'staging'], 'Name one namespace: prod or staging.'],
      [['rollback', 'prod', '--namespace', 'staging'], 'Name one namespace: prod or staging.'],
    ];
    await find(muster, game);
    for (const [args, message] of WRONG) {
      const result = await run(args, { env: developer() });
      expect([args, result.exit_code, result.stdout]).toEqual([args, 2, '']);
      expect(result.stderr).toContain(message);
    }
  }, 300_000);

  test('2 for an empty argument or value, which stands for no server, machine or namespace', async () => {
    const { lobby } = (await find(muster, game)).body;
    const EMPTY: [args: string[], what: string][] = [
      [['servers', 'stop', ''], 'The argument "server"'],
      [['servers', 'show', ''], 'The argument "server"'],
      [['lobbies', 'delete', ''], 'The argument "lobby"'],
      [['lobbies', 'close', ''], 'The argument "lobby"'],
      [['logs', ''], 'The argument "server"'],
      [['logs', '--lobby', ''], 'The value of --lobby'],
      [['exports', 'log', ''], 'The argument "server"'],
      [['machines', '', '--drain'], 'The argument "machine"'],
      [['why', ''], 'The argument "ray"'],
      [['versions', 'diff', 'one', ''], 'The argument "to"'],
      [['deploy', ''], 'The argument "namespace"'],
      [['rollback', ''], 'The argument "namespace"'],
      [['status', '--namespace', ''], 'The value of --namespace'],
      [['status', '--token='], 'The value of --token'],
      [['use', '', '--url', muster.config.public_url], 'The argument "profile"'],
    ];
    for (const [args, what] of EMPTY) {
      const { exit_code, stdout, stderr } = await run(args, { env: developer() });
      expect([args, exit_code, stdout, stderr]).toEqual([
        args,
        2,
        '',
        `${what} is empty: is the variable that it comes from set?\n`,
      ]);
    }
    const nothing_typed = await run(['status', '--token', '-'], { env: developer(), stdin: '\n' });
    expect([nothing_typed.exit_code, nothing_typed.stderr]).toEqual([2, expect.stringContaining('--token -')]);
    const running = JSON.parse((await run(['lobbies', '--json'], { env: developer() })).stdout).lobbies;
    expect(running).toContainEqual(expect.objectContaining({ lobby_id: lobby.lobby_id, is_closed: false }));
  }, 300_000);

  test('3 without a token, with how to log in; 4 for a missing game; 1 for a service that cannot be reached', async () => {
    const url = muster.config.public_url;
    const without = await run(['status', '--url', url]);
    expect([without.exit_code, without.stderr]).toEqual([3, expect.stringContaining(`Log in: muster login ${url}`)]);
    expect(without.stderr).toContain('(API_UNAUTHORIZED, ray ');
    expect(await run(['whoami', '--url', url])).toMatchObject({ exit_code: 3 });
    const missing = await run(['status', '--game', 'nowhere'], { env: developer() });
    expect([missing.exit_code, missing.stderr]).toEqual([
      4,
      expect.stringContaining('cannot be used for nowhere. If nowhere exists, set MUSTER_TOKEN to a token of it'),
    ]);
    const of_person = { ...developer(), MUSTER_TOKEN: muster.administrator_token };
    const unknown = await run(['status', '--game', 'nowhere'], { env: of_person });
    expect([unknown.exit_code, unknown.stderr]).toEqual([
      4,
      expect.stringContaining('There is no game "nowhere"; there are:'),
    ]);
    const nowhere = await run(['status', '--url', `http://127.0.0.1:${findFreePort()}`, '--token', 'x']);
    expect([nowhere.exit_code, nowhere.stderr]).toEqual([1, expect.stringContaining('cannot be reached')]);
  }, 300_000);
});

test('commands: an option may stand before the command of a group, and its value may be the name of one', async () => {
  const url = 'http://127.0.0.1:1';
  const SAME: string[][] = [
    ['servers', '--url', url, 'stop', '4f16'],
    ['servers', 'stop', '4f16', '--url', url],
    ['servers', '--game', 'stop', '--url', url],
    ['servers', '--json', '--url', url, 'list', '--all'],
  ];
  for (const args of SAME) {
    const { exit_code, stderr } = await run(args, { env: {} });
    expect([args, exit_code, stderr]).toEqual([args, 1, expect.stringContaining(`${url} cannot be reached`)]);
  }
}, 300_000);

test('commands: reach this machine without a proxy of the environment, which would get the token', async () => {
  const env = { ...developer(), HTTP_PROXY: 'http://127.0.0.1:1', no_proxy: 'play.example.com' };
  expect(await run(['status', '--game', game.game_id], { env })).toMatchObject({ exit_code: 0 });
}, 300_000);

test('commands: a duration of more than a year is refused', async () => {
  for (const args of [
    ['bots', '2', '--for', '999999999d'],
    ['machines', 'one', '--drain', '366d'],
  ]) {
    const { exit_code, stderr } = await run(args, { env: {} });
    expect([args, exit_code, stderr]).toEqual([args, 2, expect.stringContaining('write at most 365d')]);
  }
}, 300_000);

test('open: prints a link to the namespace, which logs a browser in once', async () => {
  const { exit_code, stdout, stderr } = await run(['open'], { env: developer() });
  expect([exit_code, stderr]).toEqual([0, 'Open it in a browser. It works once.\n']);
  const link = new URL(stdout.trim());
  const { game: its_game } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
  expect(link.href).toStartWith(`${muster.config.public_url}/hub/${its_game.name_id}/prod#login=`);
  const logIn = () =>
    fetch(`${muster.config.public_url}/hub/session`, {
      method: 'POST',
      headers: { origin: muster.config.public_url },
      body: JSON.stringify({ code: link.hash.slice('#login='.length) }),
    });
  expect([(await logIn()).status, (await logIn()).status]).toEqual([200, 401]);
}, 300_000);

test('commands: an address in the environment that is wrong does not matter if --url names the service', async () => {
  const url = muster.config.public_url;
  const env = { ...developer(), MUSTER_URL: 'localhost:8080', MUSTER_GAME: game.game_id };
  const unknown = await run(['lobbies', 'show', crypto.randomUUID(), '--url', url], { env });
  expect([unknown.exit_code, unknown.stderr]).toEqual([4, expect.stringContaining(` --url ${url}`)]);
}, 300_000);

test('login: reads the token from standard input, and only this user can read its file, under any umask; logout deletes it', async () => {
  const url = muster.config.public_url;
  const wrong = await run(['login', url, '--token', '-'], { stdin: 'no-token\n' });
  expect(wrong.exit_code).toBe(3);
  const umask = process.umask(0);
  const done = await run(['login', url, '--token', '-'], { stdin: `${game.cloud_token}\n` });
  process.umask(umask);
  expect(done).toMatchObject({ exit_code: 0, stdout: '', stderr: expect.stringContaining(`Logged in to ${url} for`) });
  const directory = join(home, 'config/muster');
  expect((await stat(directory)).mode & 0o777).toBe(0o700);
  expect((await readdir(directory)).toSorted()).toEqual(['credentials.json', 'profiles.json']);
  for (const name of await readdir(directory)) expect((await stat(join(directory, name))).mode & 0o777).toBe(0o600);
  const who = await run(['whoami', '--json']);
  expect(JSON.parse(who.stdout)).toMatchObject({ url, profile: 'default' });
  expect((await run(['status'])).exit_code).toBe(0);
  expect((await run(['logout'])).exit_code).toBe(0);
  expect((await run(['status'])).exit_code).toBe(3);
}, 300_000);

test('doctor: finds nothing wrong with a healthy service, and finds a refused token', async () => {
  const well = await run(['doctor', '--json'], { env: developer() });
  const { findings } = JSON.parse(well.stdout);
  // Some machines cannot isolate servers fully, and other tests share the server of the database.
  const is_of_machine = /not fully isolated|^PostgreSQL has \d+ of \d+ connections open/;
  expect(findings.filter(({ what }: { what: string }) => !is_of_machine.test(what))).toEqual([]);
  expect(well.exit_code).toBe(findings.length === 0 ? 0 : 1);
  const refused = await run(['doctor'], { env: { ...developer(), MUSTER_TOKEN: 'no-token' } });
  expect([refused.exit_code, refused.stdout]).toEqual([
    1,
    expect.stringContaining('→ This is the token of MUSTER_TOKEN'),
  ]);
}, 300_000);

describe('commands: show', () => {
  test('lobbies, servers, versions and status, as tables and as JSON', async () => {
    const { body } = await find(muster, game);
    const { lobby_id } = body.lobby;
    const text = await run(['lobbies', 'list'], { env: developer() });
    expect(text.stdout).toContain(lobby_id.slice(-12));
    const json = JSON.parse((await run(['lobbies', 'list', '--json'], { env: developer() })).stdout);
    expect(json.lobbies.map((lobby: { lobby_id: string }) => lobby.lobby_id)).toContain(lobby_id);
    expect((await run(['servers', 'list'], { env: developer() })).stdout).toContain('running');
    expect((await run(['versions'], { env: developer() })).stdout).toContain('prod');
    expect(JSON.parse((await run(['status', '--json'], { env: developer() })).stdout)).toMatchObject({
      namespace: 'prod',
    });
    const shown = JSON.parse(
      (await run(['lobbies', 'show', lobby_id.slice(-6), '--json'], { env: developer() })).stdout,
    );
    expect(shown.lobby.lobby_id).toBe(lobby_id);
  }, 300_000);

  test('why a player got a seat, and why not in another lobby', async () => {
    const other = (await find(muster, game)).body.lobby.lobby_id;
    expect(await run(['lobbies', 'close', other], { env: developer() })).toMatchObject({ exit_code: 0 });
    const { headers, body } = await find(muster, game);
    const ray_id = headers.get('rvt-ray-id') ?? '';
    const explained = await waitFor(async () => {
      const result = await run(['why', ray_id], { env: developer() });
      return result.exit_code === 0 && result;
    }, 'the receipt');
    const lines = explained.stdout.split('\n');
    expect(lines[0]).toMatch(/^find in [\d.]+ ms: a seat in the (new )?lobby [0-9a-f]{12}/);
    expect(lines[0]).toContain(body.lobby.lobby_id.slice(-12));
    expect(lines[1]).toMatch(/^asked for {5}a seat in default at \S+$/);
    expect(explained.stdout).toMatch(
      new RegExp(
        `^passed over   ${other.slice(-12)} \\(default, \\S+, \\d+ seats? taken\\): it was closed to finds$`,
        'm',
      ),
    );
    expect((await run(['why', crypto.randomUUID()], { env: developer() })).exit_code).toBe(4);
    for (const wrong of ['x', '../../x']) {
      const { exit_code, stderr } = await run(['why', wrong], { env: developer() });
      expect([exit_code, stderr]).toEqual([2, expect.stringContaining(`"${wrong}" is not a ray id`)]);
    }
  }, 300_000);

  test('any answer of the API', async () => {
    const { stdout } = await run(['api', 'get', 'cloud/games'], { env: developer() });
    expect(JSON.parse(stdout).games[0].game_id).toBe(game.game_id);
    // Also one that is no JSON.
    const page = await run(['api', 'GET', '/client.js'], { env: developer() });
    expect([page.exit_code, page.stderr]).toEqual([0, '']);
    expect(page.stdout).toContain('export');
    const quoted = JSON.parse((await run(['api', 'GET', '/client.js', '--json'], { env: developer() })).stdout);
    expect(quoted.text).toContain('export');
  }, 300_000);

  test('numbers as they are written, in requests and in answers', async () => {
    const { lobby_id } = await seatOf(find(muster, game));
    const { token = '' } = await connectGameServer(muster, game, lobby_id);
    const env = { ...developer(), MUSTER_TOKEN: token };
    const state = '{"id":12345678901234567890,"far":1e400}';
    const sent = await run(['api', 'PUT', '/matchmaker/lobbies/state', '--data', state], { env });
    expect([sent.exit_code, sent.stderr]).toEqual([0, '']);
    const path = `/matchmaker/lobbies/${lobby_id}/state`;
    expect((await run(['api', 'GET', path], { env })).stdout).toBe(`${state}\n`);
    await run(['api', 'PUT', '/matchmaker/lobbies/state', '--data', 'null'], { env });
    const watched = await run(['watch', path], { env });
    expect([watched.exit_code, watched.stderr]).toEqual([2, expect.stringContaining(`${path} cannot be watched`)]);
  }, 300_000);
});

test('logs: -f shows each line of both streams, also the last, and fails with a message after a crash', async () => {
  const servers = serversOf(muster, game);
  const build = await uploadShell(
    muster.api,
    game,
    'echo first; echo wrong >&2; sleep 1; printf "last\\033[2J\\n"; exit 3',
  );
  const { id } = (await servers.create(await servers.bodyOf(build))).body.server;
  const { exit_code, stdout, stderr } = await run(['logs', id, '-f'], { env: developer() });
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.slice(13));
  expect(lines.toSorted()).toEqual([
    '  first',
    '  last\ufffd[2J',
    '! [muster] the server ended with exit code 3',
    '! wrong',
  ]);
  expect(exit_code).toBe(1);
  expect(stderr).toContain('The server ended with exit code 3.');
  const shown = (await run(['logs', id, '--json'], { env: developer() })).stdout.trimEnd().split('\n');
  const times = shown.map((line) => JSON.parse(line).ts);
  expect([times.length, times]).toEqual([4, times.toSorted()]);
  const found = await run(['logs', id, '--grep', 'FIRST', '--json'], { env: developer() });
  expect(JSON.parse(found.stdout)).toMatchObject({ stream: 'std_out', line: 'first' });
}, 300_000);

test('logs: of a lobby, of a server and of all servers; -f begins with the first line', async () => {
  const { body } = await find(muster, game);
  const { lobby_id } = body.lobby;
  const servers = serversOf(muster, game);
  const server_id = await servers.run('seq 1 700; echo last; sleep 600');
  await waitFor(async () => (await servers.linesOf(server_id)).includes('last'), 'the lines');
  const as_developer = { env: developer() };
  const lobby_logs = await run(['logs', '--lobby', lobby_id.slice(-8)], as_developer);
  expect(lobby_logs).toMatchObject({ exit_code: 0, stdout: expect.stringContaining(`this is ${lobby_id}`) });
  expect(await run(['logs', '--lobby', server_id], as_developer)).toMatchObject({ exit_code: 4 });
  const last = await run(['logs', '--server', server_id], as_developer);
  const EARLIER = 'At most the last 256 lines of each stream are shown. For older ones: --since 1d';
  expect(last.stderr).toContain(EARLIER);
  expect(last.stdout).not.toContain('  444\n');
  const since = await run(['logs', '--server', server_id, '--since', '1d'], as_developer);
  expect(
    since.stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.slice(15)),
  ).toEqual([...Array.from({ length: 700 }, (_, index) => String(index + 1)), 'last']);
  const all = await run(['logs', '--all', '--json'], as_developer);
  const lines = all.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map(({ line }) => line)).toContain(`this is ${lobby_id}`);
  expect(lines.filter((one) => one.server_id === server_id)).toHaveLength(256);
  expect(all.stderr).toContain(EARLIER);
  const all_since = await run(['logs', '--all', '--since', '1d'], as_developer);
  expect([since.stderr, all_since.stderr].join('\n')).not.toContain(EARLIER);

  const child = start(['logs', '-f', '--all'], as_developer);
  let followed = '';
  const reading = (async () => {
    for await (const chunk of child.stdout) followed += Buffer.from(chunk).toString();
  })();
  await waitFor(() => followed.includes('  last'), 'the running server');
  expect(followed).toContain(`${server_id.slice(-4)}   1\n`);
  const later = await servers.run('echo it began; sleep 600');
  await waitFor(() => followed.includes(`${later.slice(-4)}   it began`), 'the server that started later');
  for (const id of [server_id, later]) await servers.destroy(id);
  child.kill('SIGINT');
  await child.exited;
  await reading;
}, 300_000);

/** Inserts servers that have ended as another one has, and are newer. */
async function insertNewerThan(server_id: string, count: number): Promise<void> {
  await muster.database.queries.execute(sql`
    insert into servers select (jsonb_populate_record(one, jsonb_build_object(
      'server_id', gen_random_uuid(), 'created_at', one.created_at + number * interval '1 second'))).*
    from servers one, generate_series(1, ${count}::int) number where one.server_id = ${server_id}::uuid`);
}

test('servers: all are listed, also if they are more than a page has', async () => {
  const own = await makeControlledGame(muster);
  const running = await serversOf(muster, own).run('sleep 600');
  const LARGE_SERVERS = 50;
  const environment = { LARGE: 'x'.repeat(200_000) };
  // No machine of this service takes them.
  const waits = { datacenter_id: crypto.randomUUID(), node_id: null, started_at: null, process: null };
  await copyServer(muster.database.queries, running, LARGE_SERVERS, { ...waits, environment });
  const env = { MUSTER_URL: muster.config.public_url, MUSTER_TOKEN: own.cloud_token };
  const all = JSON.parse((await run(['servers', 'list', '--json'], { env })).stdout);
  expect(all.servers).toHaveLength(LARGE_SERVERS + 1);
  await muster.database.queries.execute(
    sql`delete from servers where namespace_id = ${own.namespace_id} and node_id is null`,
  );
}, 300_000);

test('servers: commands find a server among any number of newer ones that have ended', async () => {
  const own = await makeControlledGame(muster);
  const servers = serversOf(muster, own);
  const { lobby } = (await find(muster, own)).body;
  const running = await servers.run('echo here; sleep 600');
  await waitFor(async () => (await servers.linesOf(running)).includes('here'), 'the line');
  const ended = await servers.run('exit 0');
  await servers.waitForEnd(ended);
  const NEWER = 150;
  await insertNewerThan(ended, NEWER);
  const env = { MUSTER_URL: muster.config.public_url, MUSTER_TOKEN: own.cloud_token };
  const here = { exit_code: 0, stdout: expect.stringContaining('  here\n') };
  expect(await run(['logs', running], { env })).toMatchObject(here);
  expect(await run(['logs', '--server', running.slice(-9)], { env })).toMatchObject(here);
  expect(await run(['logs', '--all'], { env })).toMatchObject({
    stdout: expect.stringContaining(' here\n'),
    stderr: expect.stringContaining('These are the lines of 30 servers.'),
  });
  expect(await run(['logs', '--lobby', lobby.lobby_id.slice(-9)], { env })).toMatchObject({ exit_code: 0 });
  expect(await run(['servers', 'show', running], { env })).toMatchObject({ exit_code: 0 });
  expect(await run(['exports', 'log', running], { env })).toMatchObject({ exit_code: 0 });
  const all = JSON.parse((await run(['servers', 'list', '--all', '--json'], { env })).stdout);
  expect(all.servers).toHaveLength(NEWER + 3);
}, 300_000);

test('servers: commands find one that is older than all that are listed by its whole id', async () => {
  const own = await makeGame(muster.api, muster.administrator_token);
  const servers = serversOf(muster, own);
  const oldest = await servers.run('echo here; exit 0');
  await servers.waitForEnd(oldest);
  await insertNewerThan(oldest, 2_100);
  const env = { MUSTER_URL: muster.config.public_url, MUSTER_TOKEN: own.cloud_token };
  const here = { exit_code: 0, stdout: expect.stringContaining('  here\n') };
  expect(await run(['logs', oldest], { env })).toMatchObject(here);
  expect(await run(['logs', '--server', oldest.toUpperCase()], { env })).toMatchObject(here);
  expect(await run(['servers', 'show', oldest], { env })).toMatchObject({ exit_code: 0 });
  expect(await run(['exports', 'log', oldest], { env })).toMatchObject({ exit_code: 0 });
  expect(await run(['servers', 'show', crypto.randomUUID()], { env })).toMatchObject({ exit_code: 4 });
}, 300_000);

test('servers: a restart is listed during its pause, and can be stopped', async () => {
  const own = await makeGame(muster.api, muster.administrator_token);
  const servers = serversOf(muster, own);
  await servers.run('exit 3', { lifecycle: { restart: 'on_crash' } });
  // If the first restart starts too early for this, another one follows.
  const { server_id: restart_id } = await waitFor(async () => {
    const [restart] = await muster.database.queries.execute<{ server_id: string }>(sql`
      update servers set start_after = start_after + interval '1 minute'
      where namespace_id = ${own.namespace_id}::uuid and start_after is not null and node_id is null and ended_at is null
      returning server_id`);
    return restart;
  }, 'a restart that has not started');
  const env = { MUSTER_URL: muster.config.public_url, MUSTER_TOKEN: own.cloud_token };
  expect((await run(['servers', 'list'], { env })).stdout).toContain('restarting');
  expect(await run(['servers', 'stop', restart_id], { env })).toMatchObject({ exit_code: 0 });
  expect((await servers.get(restart_id)).destroyed_at).toBeDefined();
}, 300_000);

test('servers: one that has been asked to end is listed as ending, and shown without an end, until it has ended', async () => {
  const own = await makeGame(muster.api, muster.administrator_token);
  const servers = serversOf(muster, own);
  const server_id = await servers.run(STUBBORN, { lifecycle: { kill_timeout: 600_000 } });
  await servers.waitForLines(server_id, 1);
  const env = { MUSTER_URL: muster.config.public_url, MUSTER_TOKEN: own.cloud_token };
  const list = async () => (await run(['servers', 'list', '--all'], { env })).stdout;
  expect(await list()).toContain(' running ');
  expect(await run(['servers', 'stop', server_id], { env })).toMatchObject({ exit_code: 0 });
  expect(await list()).toContain(' ending ');
  const show = async () => JSON.parse((await run(['servers', 'show', server_id, '--json'], { env })).stdout);
  expect(await show()).toEqual({ server: expect.objectContaining({ id: server_id }) });
  await servers.destroy(server_id, '?override_kill_timeout=0');
  await waitForEndEvent(muster, server_id);
  expect(await list()).toContain(' ended ');
  expect((await show()).end).toMatchObject({ summary: expect.any(String) });
}, 300_000);

test('lobbies watch: each change is a line of JSON', async () => {
  const child = start(['lobbies', 'watch', '--json'], { env: developer() });
  const bodies: { rows: { lobby_id: string; player_count: number }[]; summary: { lobbies: number } }[] = [];
  const reading = (async () => {
    let text = '';
    for await (const chunk of child.stdout) {
      text += Buffer.from(chunk).toString();
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      bodies.push(...lines.map((line) => JSON.parse(line)));
    }
  })();
  await waitFor(() => bodies.length > 0, 'the first body');
  const { lobby } = (await find(muster, game)).body;
  // The changes that are pushed become whole rows.
  await waitFor(() => bodies.at(-1)?.rows.some(({ lobby_id }) => lobby_id === lobby.lobby_id), 'the lobby');
  expect(bodies.at(-1)?.summary.lobbies).toBe(bodies.at(-1)?.rows.length);
  await find(muster, game);
  const count = (body: (typeof bodies)[number] | undefined) =>
    body?.rows.reduce((sum, { player_count }) => sum + player_count, 0) ?? 0;
  const before = count(bodies[0]);
  await waitFor(() => count(bodies.at(-1)) >= before + 2, 'the players');
  child.kill('SIGINT');
  await child.exited;
  await reading;
}, 300_000);

describe('commands that go on: end with the code of the refusal', () => {
  const GOING_ON = [
    ['logs', '--all', '-f'],
    ['lobbies', 'watch'],
  ];
  test.each(GOING_ON)(
    '%s %s, once its token is revoked, or its member removed',
    async (...command) => {
      const own = await makeGame(muster.api, muster.administrator_token);
      const servers = serversOf(muster, own);
      const server = await servers.bodyOf(await uploadShell(muster.api, own, 'echo here; sleep 600'));
      const token = muster.administrator_token;
      const startServer = () => muster.api.ok('POST', servers.path, { token, body: server });
      await startServer();
      const member = await makeMember(muster, own);
      const ENDS: [MUSTER_TOKEN: string, path: string, error: object][] = [
        [
          own.cloud_token,
          `/cloud/games/${own.game_id}/tokens/revoke`,
          { exit_code: 3, code: 'TOKEN_REVOKED', message: expect.stringContaining('muster login') },
        ],
        [
          member.token,
          `/group/groups/${own.group_id}/kick/${member.identity_id}`,
          { exit_code: 4, code: 'GAME_NOT_FOUND', message: expect.any(String) },
        ],
      ];
      for (const [MUSTER_TOKEN, path, error] of ENDS) {
        const env = { MUSTER_URL: muster.config.public_url, MUSTER_TOKEN, MUSTER_GAME: own.game_id };
        const child = start([...command, '--json'], { env });
        let stdout = '';
        const reading = (async () => {
          for await (const chunk of child.stdout) stdout += Buffer.from(chunk).toString();
        })();
        await waitFor(() => stdout !== '', 'the first line');
        await muster.api.ok('POST', path, { token, body: {} });
        // A poll is answered at the next change.
        await startServer();
        const stderr = (await new Response(child.stderr).text()).trimEnd().split('\n').at(-1) ?? '';
        expect(JSON.parse(stderr)).toEqual({ error: { ...error, ray_id: expect.stringMatching(/^[0-9a-f-]{36}$/) } });
        expect(await child.exited).toBe(JSON.parse(stderr).error.exit_code);
        await reading;
      }
    },
    300_000,
  );
});

test('a command that goes on ends once the reader of its output has ended', async () => {
  const command = ['sh', '-c', '"$0" "$@" | head -1', ...COMMAND, 'lobbies', 'watch', '--json'];
  const env = { PATH: process.env.PATH ?? '', HOME: home, ...developer() };
  const child = Bun.spawn(command, { cwd: home, env, stdout: 'pipe', stderr: 'inherit' });
  await waitFor(async () => {
    // Each seat is a change, which is written.
    await find(muster, game);
    return child.exitCode !== null;
  }, 'the command to end');
  expect((await new Response(child.stdout).text()).trimEnd().split('\n')).toHaveLength(1);
}, 300_000);
