import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { claimPorts } from '../../src/commands/test/ports.ts';
import { sharedFiles } from '../support/database/postgres-cluster.ts';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { findProcessesOf } from '../support/processes.ts';
import { COMMAND } from '../support/program.ts';
import { openTerminal, waitForOutput } from '../support/terminal.ts';
import { waitFor } from '../support/wait.ts';

const DUEL = resolve(import.meta.dir, '../../examples/duel');
const CONCURRENT_RUNS = IS_FULL_LENGTH ? 10 : 3;

/** Prints the variables, and the games of the service. */
const PRINT_VARIABLES = `
const { MUSTER_URL, MUSTER_TOKEN, MUSTER_GAME, MUSTER_NAMESPACE, MUSTER_TEST_CLOCK } = process.env;
const headers = { authorization: 'Bearer ' + MUSTER_TOKEN };
const { games } = await (await fetch(MUSTER_URL + '/cloud/games', { headers })).json();
const { game } = await (await fetch(MUSTER_URL + '/cloud/games/' + MUSTER_GAME, { headers })).json();
const { name_id } = game.namespaces.find(({ namespace_id }) => namespace_id === MUSTER_NAMESPACE);
console.log(JSON.stringify({ MUSTER_URL, MUSTER_TEST_CLOCK, games: games.length, game: game.display_name, namespace: name_id }));
`;
/** Finds a seat in the deployed game, and prints its lobby. */
const FIND = `
const { MUSTER_URL, MUSTER_TOKEN, MUSTER_GAME, MUSTER_NAMESPACE } = process.env;
const send = async (path, token, body) => {
  const request = { method: 'POST', headers: { authorization: 'Bearer ' + token }, body: JSON.stringify(body) };
  return await (await fetch(MUSTER_URL + path, request)).json();
};
const { token } = await send('/cloud/games/' + MUSTER_GAME + '/namespaces/' + MUSTER_NAMESPACE + '/tokens/public', MUSTER_TOKEN, {});
const { lobby } = await send('/matchmaker/lobbies/find', token, { game_modes: ['default'] });
console.log('lobby', lobby.lobby_id, 'of', MUSTER_URL);
`;
/** Ends with 0 after a signal, and prints how many came. */
const WAIT_FOR_SIGNAL = `
let count = 0;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {
  count += 1;
  if (count === 1) setTimeout(() => { console.log('got ' + count + ' ' + signal); process.exit(0); }, 300);
});
console.log('waiting');
setInterval(() => {}, 1e9);
`;

/** TMPDIR of the runs: all of their files are in it, and all of their processes name it. */
let temporary: string;
beforeEach(async () => {
  temporary = await mkdtemp(join(tmpdir(), 'muster-suite-'));
  await chmod(temporary, 0o711);
});
afterEach(() => rm(temporary, { recursive: true, force: true }));

interface Run {
  env?: Record<string, string>;
  cwd?: string;
  stdin?: string;
}

const environment = async (env: Record<string, string> = {}) => {
  const { PATH = '' } = process.env;
  // The bun that runs the tests may not be in the PATH.
  const own = `${resolve(process.execPath, '..')}:${PATH}`;
  return { PATH: own, HOME: temporary, TMPDIR: temporary, XDG_CACHE_HOME: await sharedFiles(), ...env };
};

const script = (code: string) => [process.execPath, '-e', code];

/** Starts `muster test` with arguments, without a terminal. */
async function start(args: string[], { env, cwd = temporary, stdin = '' }: Run = {}) {
  const child = Bun.spawn([...COMMAND, 'test', ...args], {
    cwd,
    env: await environment(env),
    stdin: new Blob([stdin]),
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const written = { stdout: '', stderr: '' };
  const read = async (stream: ReadableStream<Uint8Array>, to: keyof typeof written) => {
    const decoder = new TextDecoder();
    for await (const bytes of stream) written[to] += decoder.decode(bytes, { stream: true });
  };
  const reading = Promise.all([read(child.stdout, 'stdout'), read(child.stderr, 'stderr')]);
  return {
    child,
    output: () => written.stdout + written.stderr,
    ended: async () => {
      const exit_code = await child.exited;
      await reading;
      return { exit_code, ...written };
    },
  };
}

const run = async (args: string[], options?: Run) => await (await start(args, options)).ended();

/** What runs have left. */
const remains = () => ({ files: readdirSync(temporary), processes: findProcessesOf(temporary) });
const NOTHING = { files: [], processes: [] };

const isAnswered = (url: string) =>
  fetch(url).then(
    () => true,
    () => false,
  );

describe('muster test: refuses', () => {
  test('unknown settings', async () => {
    const refused = await run(['--', 'true'], { env: { MUSTER_SEAT_TIMOUT_MS: '1000' } });
    expect([refused.exit_code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('MUSTER_SEAT_TIMOUT_MS is not a setting'),
    ]);
  }, 300_000);

  test('a call without a command and unknown options with exit code 2 and its usage', async () => {
    for (const args of [[], ['--'], ['--deploi', '--', 'true'], ['--deploy']]) {
      const refused = await run(args);
      expect([args, refused.exit_code, refused.stdout]).toEqual([args, 2, '']);
      expect(refused.stderr).toContain('Usage: muster test [--deploy] -- COMMAND');
    }
    expect((await run(['--deploi', '--', 'true'])).stderr).toContain('The command "test" has no option "--deploi".');
    expect(await run(['--help'])).toMatchObject({
      exit_code: 0,
      stderr: '',
      stdout: expect.stringContaining('MUSTER_URL'),
    });
    expect(remains()).toEqual(NOTHING);
  }, 300_000);

  test('a command that is missing or not a program, with the exit codes of a shell', async () => {
    expect(await run(['--', 'no-such-program'])).toMatchObject({
      exit_code: 127,
      stderr: '"no-such-program" was not found.\n',
    });
    expect(await run(['--', '/etc/passwd'])).toMatchObject({ exit_code: 126 });
    expect(remains()).toEqual(NOTHING);
  }, 300_000);

  test('settings that a service cannot use, and a game that cannot be deployed', async () => {
    const wrong = await run(['--', 'true'], { env: { MUSTER_SEAT_TIMEOUT_MS: 'soon' } });
    expect(wrong).toMatchObject({ exit_code: 1, stderr: expect.stringContaining('MUSTER_SEAT_TIMEOUT_MS is "soon"') });
    const missing = await run(['--deploy', '--', ...script('console.log("it ran")')]);
    expect(missing).toMatchObject({ exit_code: 2, stdout: '', stderr: expect.stringContaining('muster init') });
    expect(remains()).toEqual(NOTHING);
  }, 300_000);
});

test('muster test: the command gets an empty game, the run ends with its exit code, and nothing is left', async () => {
  // These name another service, which the run must not use.
  const env = { DATABASE_URL: 'postgres://nowhere.invalid/', MUSTER_PORT: '1', MUSTER_DATA: '/nowhere' };
  await Bun.write(join(temporary, 'game/muster.yaml'), 'game: tanks\nbuild: { path: server.js }\n');
  const { exit_code, stdout, stderr } = await run(['--', ...script(`${PRINT_VARIABLES} process.exit(7);`)], {
    env,
    cwd: join(temporary, 'game'),
  });
  expect([exit_code, stderr]).toEqual([7, '']);
  const seen = JSON.parse(stdout);
  expect(seen).toMatchObject({ games: 1, game: 'tanks', namespace: 'prod' });
  expect(await isAnswered(seen.MUSTER_URL)).toBe(false);
  expect(await isAnswered(seen.MUSTER_TEST_CLOCK)).toBe(false);
  expect(remains()).toEqual({ files: ['game'], processes: [] });
}, 300_000);

test('muster test: what the command has started and left ends with the run', async () => {
  const { exit_code } = await run(['--', 'sh', '-c', 'sleep 1000 >/dev/null 2>&1 & exit 3']);
  expect([exit_code, remains()]).toEqual([3, NOTHING]);
  const { child, output, ended } = await start(['--', 'sh', '-c', 'sh -c "echo waiting; exec sleep 1000"; true']);
  await waitForOutput({ output }, 'waiting');
  child.kill('SIGTERM');
  expect([(await ended()).exit_code, remains()]).toEqual([143, NOTHING]);
}, 300_000);

test('muster test: a port that another program has at one of the loopback addresses is left out', () => {
  const { service_port, ...first } = claimPorts();
  first[Symbol.dispose]();
  const other = Bun.listen({ hostname: '::1', port: service_port, socket: { data() {} } });
  using second = claimPorts();
  other.stop(true);
  expect([second.service_port, second.clock_port]).not.toContain(service_port);
});

test('muster test: a command without "--" gets its own options and standard input, and the exit code of its signal', async () => {
  const code = 'cat; echo "$0 $1"; kill -KILL $$';
  const { exit_code, stdout } = await run(['sh', '-c', code, '--deploy', '--help'], { stdin: 'typed ' });
  expect([exit_code, stdout]).toEqual([137, 'typed --deploy --help\n']);
}, 300_000);

test('muster test: the clock moves only forwards, and only at its own address', async () => {
  const code = `
    const { MUSTER_URL, MUSTER_TEST_CLOCK } = process.env;
    const post = async (url, body) => { const answer = await fetch(url, { method: 'POST', body }); return [answer.status, await answer.text()]; };
    const day = 24 * 3_600_000;
    const refused = [];
    for (const body of ['{"advance_ms": -1}', '{"advance_ms": 0.5}', '{}', 'x']) refused.push((await post(MUSTER_TEST_CLOCK, body))[0]);
    const [elsewhere] = await post(new URL('/', MUSTER_TEST_CLOCK), '{"advance_ms": 1}');
    const [status, text] = await post(MUSTER_TEST_CLOCK, JSON.stringify({ advance_ms: day }));
    const ahead_ms = new Date(JSON.parse(text).now) - Date.now();
    console.log(JSON.stringify({ refused, elsewhere, status, is_ahead: Math.abs(ahead_ms - day) < 60_000 }));`;
  const { stdout, stderr } = await run(['--', ...script(code)]);
  expect([stderr, JSON.parse(stdout)]).toEqual([
    '',
    { refused: [400, 400, 400, 400], elsewhere: 404, status: 200, is_ahead: true },
  ]);
}, 300_000);

describe('muster test: passes signals on:', () => {
  const SIGNALS: [signal: NodeJS.Signals, exit_code: number][] = [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ];
  test.each(SIGNALS)('%s reaches the command, and the run ends with %d', async (signal, exit_code) => {
    const { child, output, ended } = await start(['--', ...script(WAIT_FOR_SIGNAL)]);
    await waitForOutput({ output }, 'waiting');
    child.kill(signal);
    expect(await ended()).toEqual({ exit_code, stdout: `waiting\ngot 1 ${signal}\n`, stderr: '' });
    expect(remains()).toEqual(NOTHING);
  });

  test('a signal during the start of the service ends the run without the command', async () => {
    const { child, ended } = await start(['--', 'echo', 'it ran']);
    await waitFor(() => readdirSync(temporary).length > 0, 'the directory of the service');
    child.kill('SIGTERM');
    expect(await ended()).toEqual({ exit_code: 143, stdout: '', stderr: '' });
    expect(remains()).toEqual(NOTHING);
  }, 300_000);

  test('ctrl-C in a terminal reaches the command once', async () => {
    const { output, pressCtrlC, exited } = openTerminal(
      [...COMMAND, 'test', '--', ...script(WAIT_FOR_SIGNAL)],
      await environment(),
    );
    await waitForOutput({ output }, 'waiting');
    pressCtrlC();
    expect(await exited).toBe(130);
    expect(output()).toContain('got 1 SIGINT');
    expect(remains()).toEqual(NOTHING);
  }, 300_000);
});

describe('muster test: leaves nothing, with a game server running,', () => {
  const args = ['--deploy', '--', ...script(`${FIND} ${WAIT_FOR_SIGNAL}`)];

  test('if it is killed', async () => {
    const { child, output } = await start(args, { cwd: DUEL });
    await waitForOutput({ output }, 'waiting');
    child.kill('SIGKILL');
    await waitFor(() => remains().processes.length === 0, 'all processes to end');
    await waitFor(() => remains().files.length === 0, 'all files to be removed');
  }, 300_000);

  test('if its service is killed', async () => {
    // A process that the tests leave, as a browser or a server for pages.
    const leftover = `Bun.spawn([process.execPath, '-e', 'setInterval(() => {}, 1e9)'], { stdin: 'ignore', detached: true }).unref();`;
    const leaving = ['--deploy', '--', ...script(`${leftover} ${FIND} ${WAIT_FOR_SIGNAL}`)];
    const { child, output, ended } = await start(leaving, { cwd: DUEL });
    await waitForOutput({ output }, 'waiting');
    const [service = 0] = childrenOf(child.pid).filter(isService);
    process.kill(service, 'SIGKILL');
    child.kill('SIGTERM');
    expect(await ended()).toMatchObject({
      exit_code: 143,
      stderr: expect.stringContaining('The service was killed, or did not end in time.'),
    });
    expect(remains()).toEqual(NOTHING);
  }, 300_000);

  test('if its database is in memory, as it is without TMPDIR', async () => {
    const { TMPDIR: _, ...env } = await environment();
    const child = Bun.spawn([...COMMAND, 'test', '--', ...script(WAIT_FOR_SIGNAL)], { env, stdout: 'pipe' });
    await child.stdout.getReader().read();
    const [service = 0] = childrenOf(child.pid).filter(isService);
    const [data = ''] = readFileSync(`/proc/${service}/cmdline`, 'utf8').match(/\/tmp\/muster-test-\w+/) ?? [];
    const database = join('/dev/shm', basename(data));
    const { bavail, bsize } = statfsSync('/dev/shm');
    expect(existsSync(data)).toBe(true);
    expect(existsSync(database)).toBe(bavail * bsize >= 2 * 1024 ** 3);
    child.kill('SIGTERM');
    expect(await child.exited).toBe(143);
    expect([data, database].filter((path) => existsSync(path))).toEqual([]);
    expect([data, database].flatMap(findProcessesOf)).toEqual([]);
  }, 300_000);

  test(`after ${CONCURRENT_RUNS} runs at the same time, each with lobbies of its own`, async () => {
    const command = ['--deploy', '--', ...script(FIND)];
    const runs = await Promise.all([...Array(CONCURRENT_RUNS)].map(() => run(command, { cwd: DUEL })));
    expect(runs.map(({ exit_code }) => exit_code)).toEqual(runs.map(() => 0));
    const lines = runs.map(({ stdout }) => stdout.trim().split(' '));
    for (const part of [1, 3]) expect(new Set(lines.map((line) => line[part])).size).toBe(CONCURRENT_RUNS);
    expect(remains()).toEqual(NOTHING);
  }, 300_000);
});

test('muster test: two first runs at the same time prepare the database once, and leave only its files', async () => {
  const cache = join(temporary, 'cache');
  const env = { XDG_CACHE_HOME: cache };
  const runs = await Promise.all([1, 2].map(() => run(['--', ...script(PRINT_VARIABLES)], { env })));
  expect(runs.map(({ exit_code, stderr }) => [exit_code, stderr])).toEqual([
    [0, ''],
    [0, ''],
  ]);
  const kept = readdirSync(join(cache, 'muster')).toSorted();
  expect(kept).toEqual([expect.stringMatching(/^\d+\.\d/), expect.stringMatching(/^cluster-[0-9a-f]{16}$/), 'lock']);
  expect(remains()).toEqual({ files: ['cache'], processes: [] });
}, 300_000);

test('muster test: the suite of examples/duel passes: find, a full lobby, a crash, a captcha, the clock', async () => {
  const { exit_code, stderr } = await run(['--deploy', '--', 'bun', 'test'], { cwd: DUEL });
  expect(stderr).toContain(' 5 pass\n 0 fail\n');
  // A command that is typed later would act on another service.
  expect(stderr).not.toContain('To undo');
  expect(exit_code).toBe(0);
  expect(remains()).toEqual(NOTHING);
}, 300_000);

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
}

function isService(pid: number): boolean {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('test-service');
}
