// Measures the command line against a service on this machine: `bun bench/cli.ts`. Uses dist/muster if it is there.
// Beside it, in the same run: an empty program that Bun compiled, tar and curl to a bare server, and tail -f.
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { $ } from 'bun';
import { createApi } from '../tests/support/api.ts';
import { findFreePort } from '../tests/support/network/test-ports.ts';
import { commandOf, type Home, makeHome } from '../tests/support/program.ts';
import { openTerminal, waitForOutput } from '../tests/support/terminal.ts';
import { type Goal, middleOf, printGoals, printTable, within } from './report.ts';
import { runBench } from './run.ts';
import { measure, percentile } from './samples.ts';

const COMMAND = commandOf(existsSync('dist/muster') ? 'executable' : 'source');
const ROOM = resolve('examples/room.ts');
const UPLOAD_BYTES = 50 * 1024 * 1024;
const RANDOM_CHUNK_BYTES = 65_536;
const STARTS = 21;
const CHANGES = 7;
const TEST_RUNS = 7;
const LINES = 40;
const LINE_EVERY_MS = 150;
const MATCHMAKER = 'matchmaker: {max_players: 2, docker: {ports: {game: {port: 80, protocol: http}}}}';

const goals: Goal[] = [];
const peers: string[][] = [['', 'measured']];

const addPeer = (what: string, milliseconds: number) => peers.push([what, `${milliseconds.toFixed(2)} ms`]);

await runBench(async (opened) => {
  const directory = await mkdtemp(join(tmpdir(), 'muster-bench-cli-'));
  opened.defer(() => rm(directory, { recursive: true, force: true }));
  await measureStarts(directory);
  await measureTest(directory);
  await measureDev(directory, opened.use(await makeHome()));
  await measureDeploys(directory, opened.use(await makeHome({}, { has_prepared_database: true })));
  await measureLogs(directory, opened.use(await makeHome({}, { has_prepared_database: true })));
  printGoals(goals);
  printTable('Peers, in the same run', peers);
  if (COMMAND.length > 1) console.log('\nNot measured: the executable (bun run build).');
});

/** Measures how long the program takes to print its version and its help. */
async function measureStarts(directory: string): Promise<void> {
  const empty = join(directory, 'empty');
  await writeFile(`${empty}.ts`, 'export {};');
  await $`bun build --compile --bytecode --format=esm ${empty}.ts --outfile ${empty}`.quiet();
  const timeOf = async (...command: string[]) => {
    const times: number[] = [];
    for (let start = 0; start < STARTS; start += 1) times.push(await measure(() => $`${command}`.quiet()));
    return middleOf(times);
  };
  addPeer('an empty program', await timeOf(empty));
  goals.push(within('--version, median', 40, await timeOf(...COMMAND, '--version')));
  goals.push(within('--help, median', 60, await timeOf(...COMMAND, '--help')));
  goals.push(within('deploy --help, median', 60, await timeOf(...COMMAND, 'deploy', '--help')));
}

/** Measures how long `muster test` takes until its command starts, once the files of PostgreSQL are unpacked. */
async function measureTest(directory: string): Promise<void> {
  const { PATH = '' } = process.env;
  // PostgreSQL does not run as root, and must reach its files.
  await chmod(directory, 0o711);
  const env = { PATH, HOME: directory, TMPDIR: directory, XDG_CACHE_HOME: join(directory, 'cache') };
  const times: number[] = [];
  for (let run = 0; run <= TEST_RUNS; run += 1) {
    const started = Date.now();
    const printed = await $`${COMMAND} test -- date +%s%3N`.cwd(directory).env(env).quiet().text();
    // The first run unpacks.
    if (run > 0) times.push(Number(printed) - started);
  }
  goals.push(within('test, to the start of its command, median', 1_000, middleOf(times)));
}

/** Measures `muster dev` in a new folder: until two players play, and from a saved change until a lobby has it. */
async function measureDev(directory: string, home: Home): Promise<void> {
  const folder = join(directory, 'dev');
  await mkdir(folder);
  await cp(ROOM, join(folder, 'server.ts'));
  await writeFile(join(folder, 'muster.yaml'), `game: benched\nbuild: {path: server.ts}\n${MATCHMAKER}\n`);
  const started = performance.now();
  const terminal = openTerminal([...COMMAND, 'dev', '--no-open'], home.environment, { cwd: folder });
  await waitForOutput(terminal, 'The first version: live after');
  const token = /public token +(\S+)/.exec(terminal.output())?.[1];
  if (token === undefined) throw new Error(terminal.output());
  const find = () =>
    createApi(home.url).ok('POST', '/matchmaker/lobbies/find', { token, body: { game_modes: ['default'] } });
  const seats = await Promise.all([find(), find()]);
  await Promise.all(seats.map(connect));
  goals.push(within('dev in a new folder, to two players', 10_000, performance.now() - started));

  const server = await Bun.file(ROOM).text();
  const times: number[] = [];
  for (let change = 1; change <= CHANGES; change += 1) {
    const answer = `no seat after change ${change}`;
    const saved = performance.now();
    await Bun.write(join(folder, 'server.ts'), server.replace("'no seat'", `'${answer}'`));
    const live = () => terminal.output().split('changed: live after').length > change;
    while (!live()) await Bun.sleep(1);
    const { ports } = await find();
    const text = await (await fetch(`http://${ports.game.host}/`)).text();
    if (text !== answer) throw new Error(`a lobby of another version: ${text}`);
    times.push(performance.now() - saved);
  }
  goals.push(within('a saved change to a new lobby, median', 1_000, middleOf(times)));
  terminal.write('q');
  await terminal.exited;
}

/** Connects to a room as a player, and waits for its first message. */
async function connect({ ports, player }: { ports: { game: { host: string } }; player: { token: string } }) {
  const socket = new WebSocket(`ws://${ports.game.host}/?token=${player.token}`);
  await new Promise((done, fail) => {
    socket.addEventListener('open', done);
    socket.addEventListener('error', fail);
  });
  return socket;
}

/** Measures a deploy of 50 MiB that cannot be compressed, new and unchanged. */
async function measureDeploys(directory: string, home: Home): Promise<void> {
  const program = await home.start({ command: [...COMMAND, 'serve'] });
  const folder = join(directory, 'deployed');
  await mkdir(join(folder, 'server'), { recursive: true });
  const content = Bun.file(join(folder, 'server/content.bin')).writer();
  for (let written = 0; written < UPLOAD_BYTES; written += RANDOM_CHUNK_BYTES) {
    content.write(crypto.getRandomValues(new Uint8Array(RANDOM_CHUNK_BYTES)));
  }
  await content.end();
  const ready =
    'curl -sS -X POST "$SERVICE_API_ENDPOINT/matchmaker/lobbies/ready" -H "Authorization: Bearer $SERVICE_TOKEN"';
  await writeFile(join(folder, 'server/run.sh'), `${ready}\nexec sleep 600\n`);
  const build = 'build: {path: server, command: [/bin/sh, run.sh]}';
  await writeFile(join(folder, 'muster.yaml'), `game: large\n${build}\n${MATCHMAKER}\n`);
  const env = { ...home.environment, MUSTER_URL: home.url, MUSTER_TOKEN: program.administrator_token };
  const deploy = () => measure(() => $`${COMMAND} deploy`.cwd(folder).env(env).quiet());

  addPeer('50 MiB by tar and curl to a bare server that writes a file', await sendBare(folder));
  goals.push(within('deploy of 50 MiB', 10_000, await deploy()));
  goals.push(within('the same again, unchanged', 2_000, await deploy()));
  await program.stop('SIGINT');
}

async function sendBare(folder: string): Promise<number> {
  const file = join(folder, 'received');
  using server = Bun.serve({
    hostname: '127.0.0.1',
    port: findFreePort(),
    maxRequestBodySize: 2 * UPLOAD_BYTES,
    async fetch(request) {
      await Bun.write(file, request);
      return new Response();
    },
  });
  return await measure(() => $`tar -c server | curl -sSf -T - ${server.url.href}`.cwd(folder).quiet());
}

/** Measures how late `muster logs -f` shows a line. Each line has the moment at which the server wrote it. */
async function measureLogs(directory: string, home: Home): Promise<void> {
  const program = await home.start({ command: [...COMMAND, 'serve'] });
  const folder = join(directory, 'logged');
  await mkdir(folder);
  const writer_source = `setInterval(() => console.log('written at', Date.now()), ${LINE_EVERY_MS});`;
  await writeFile(join(folder, 'server.ts'), `${await Bun.file(ROOM).text()}\n${writer_source}\n`);
  await writeFile(join(folder, 'muster.yaml'), `game: logged\nbuild: {path: server.ts}\n${MATCHMAKER}\n`);
  const env = { ...home.environment, MUSTER_URL: home.url, MUSTER_TOKEN: program.administrator_token };
  await $`${COMMAND} deploy`.cwd(folder).env(env).quiet();
  const bots = Bun.spawn([...COMMAND, 'bots', '2', '--for', '20s', '--game', 'logged'], {
    env,
    stdout: 'ignore',
    stderr: 'ignore',
  });
  const lobbies = () => $`${COMMAND} lobbies list --json --game logged`.env(env).json();
  while ((await lobbies()).lobbies.length === 0) await Bun.sleep(50);
  const shown = await readDelays([...COMMAND, 'logs', '-f', '--game', 'logged'], env);
  goals.push(within('logs -f shows a line, p95', 300, percentile({ name: '', milliseconds: shown }, 0.95)));
  bots.kill();
  await bots.exited;

  const file = join(directory, 'lines');
  await writeFile(file, '');
  const writer = Bun.spawn([process.execPath, '-e', writer_source], { stdout: Bun.file(file), stderr: 'ignore' });
  const tailed = await readDelays(['tail', '-f', '-n', '0', file], { PATH: home.environment.PATH ?? '' });
  addPeer('tail -f shows a line, p95', percentile({ name: '', milliseconds: tailed }, 0.95));
  writer.kill();
  await program.stop('SIGINT');
}

/** Runs a command that shows lines as they are written. Returns how late each line was. */
async function readDelays(command: string[], env: Record<string, string>): Promise<number[]> {
  const child = Bun.spawn(command, { env, stdin: 'ignore', stdout: 'pipe', stderr: 'ignore' });
  const delays: number[] = [];
  const decoder = new TextDecoder();
  const started = Date.now();
  for await (const bytes of child.stdout) {
    const now = Date.now();
    for (const [, written] of decoder.decode(bytes, { stream: true }).matchAll(/written at (\d+)/g)) {
      // Earlier lines were there before the command.
      if (Number(written) > started + LINE_EVERY_MS) delays.push(now - Number(written));
    }
    if (delays.length >= LINES) break;
  }
  child.kill();
  await child.exited;
  return delays;
}
