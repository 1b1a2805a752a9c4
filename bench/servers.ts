// Measures game servers on one machine: `bun bench/servers.ts`. How long a contained JavaScript server takes until it is
// ready, as a process and in a container, how many start in a second, how many lines of a log are stored and followed in a second, what a server that
// writes 100 MB a second does to the API, and the memory of the service with PostgreSQL and one room.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { deploy, makeGame, type TestGame, uploadBuild } from '../tests/support/game.ts';
import { makeRoomGame, READY_SOURCE } from '../tests/support/lobbies/room.ts';
import { commandOf, makeHome, type Program } from '../tests/support/program.ts';
import { listBunFiles, packImage, reasonWithoutContainers } from '../tests/support/runtimes/containers.ts';
import { serversOf } from '../tests/support/servers.ts';
import { startByHand } from './by-hand.ts';
import { type Goal, printGoals } from './report.ts';
import { runBench } from './run.ts';
import { measure, measureAtRate, percentile, report, type Samples } from './samples.ts';

const STARTS = 40;
const WARM_UP = 5;
const STARTS_AT_ONCE = 8;
const LINES = 600_000;
const LINES_AT_ONCE = 6_000;
const PROBES = 800;
const PROBE_EVERY_MS = 10;
const KIBIBYTES_PER_MEBIBYTE = 1_024;

await runBench(async (opened) => {
  const home = opened.use(await makeHome());
  const program = await home.start({ command: commandOf(existsSync('dist/muster') ? 'executable' : 'source') });
  const goals: Goal[] = [];
  const find = async (token: string) =>
    await program.api.ok('POST', '/matchmaker/lobbies/find', { token, body: { game_modes: ['default'] } });

  const room = await makeRoomGame(program, { source: READY_SOURCE, max_players: 2 });
  await find(room.public_token);
  await Bun.sleep(5_000);
  goals.push(memoryGoal(home.processes()));

  const cold = await makeRoomGame(program, { source: READY_SOURCE, max_players: 1 });
  const script = join(home.data_directory, 'room.ts');
  await Bun.write(script, READY_SOURCE);
  const by_hand: Samples = { name: 'the same program, started by hand', milliseconds: [] };
  const contained: Samples = { name: 'a contained server, found by a player', milliseconds: [] };
  for (let repetition = -WARM_UP; repetition < STARTS; repetition += 1) {
    const hand_ms = await startByHand(script);
    const contained_ms = await measure(() => find(cold.public_token));
    if (repetition < 0) continue;
    by_hand.milliseconds.push(hand_ms);
    contained.milliseconds.push(contained_ms);
  }
  report('Cold start to ready of a JavaScript server', [by_hand, contained]);
  goals.push(goalOf('cold start to ready, p95', { at_most: 100, unit: 'ms' }, percentile(contained, 0.95)));
  goals.push(...(await measureContainers(program)));

  const all_ms = await measure(async () => {
    let left = STARTS;
    const startSome = async () => {
      while (left-- > 0) await find(cold.public_token);
    };
    await Promise.all(Array.from({ length: STARTS_AT_ONCE }, startSome));
  });
  goals.push(goalOf('starts', { at_least: 20, unit: '/s' }, (STARTS * 1_000) / all_ms));

  goals.push(...(await measureLogs(program)));
  goals.push(await measureFlood(program));
  printGoals(goals);
});

/** Measures the cold start of the same program in a container, where this machine can run one. */
async function measureContainers(program: Program): Promise<Goal[]> {
  const reason = reasonWithoutContainers();
  if (reason !== undefined) {
    console.log(`\nNot measured, because ${reason}: the cold start in a container.`);
    return [];
  }
  const game = await makeImageGame(program, READY_SOURCE);
  const find = async () =>
    await program.api.ok('POST', '/matchmaker/lobbies/find', {
      token: game.public_token,
      body: { game_modes: ['default'] },
    });
  const inside: Samples = { name: 'a server in a container, found by a player', milliseconds: [] };
  for (let repetition = -WARM_UP; repetition < STARTS; repetition += 1) {
    const inside_ms = await measure(find);
    if (repetition >= 0) inside.milliseconds.push(inside_ms);
  }
  report('Cold start to ready of a JavaScript server, in a container', [inside]);
  return [goalOf('cold start to ready in a container, p95', { at_most: 400, unit: 'ms' }, percentile(inside, 0.95))];
}

/** Makes a game whose servers are an image with Bun and a script. */
async function makeImageGame({ api, administrator_token }: Program, source: string): Promise<TestGame> {
  const game = await makeGame(api, administrator_token);
  const files = [...(await listBunFiles()), { name: 'game/main.js', content: source }];
  const content = await packImage('', 'room:1', { command: ['/bin/bun', '/game/main.js'], files });
  const image_id = await uploadBuild(api, game, { image_tag: 'room:1', path: 'image.tar', content });
  await deploy(api, game, {
    game_modes: { default: {} },
    max_players: 1,
    docker: { image_id, ports: { game: { port: 80, protocol: 'http' } } },
  });
  return game;
}

/** Runs a server that writes lines as fast as the goal, and follows its log to the end. */
async function measureLogs(program: Program): Promise<Goal[]> {
  const game = await makeGame(program.api, program.administrator_token);
  const servers = serversOf(program, game);
  const pause_s = 0.8 * (LINES_AT_ONCE / 120_000);
  const server_id = await servers.run(
    `sleep 1; n=0; while [ $n -lt ${LINES / LINES_AT_ONCE} ]; do
      yes "a line of a game server" | head -n ${LINES_AT_ONCE}; n=$((n + 1)); sleep ${pause_s}
    done; echo end; exec sleep 600`,
  );
  await servers.waitForStart(server_id);
  let { index } = (await servers.log(server_id)).body.watch;
  let count = 0;
  let began: number | undefined;
  for (let has_ended = false; !has_ended; ) {
    const { body } = await servers.log(server_id, 'std_out', index);
    if (body.lines.length > 0) began ??= performance.now();
    count += body.lines.length;
    index = body.watch.index;
    has_ended = body.lines.at(-1) === btoa('end');
  }
  const seconds = (performance.now() - (began ?? 0)) / 1_000;
  await servers.destroy(server_id, '?override_kill_timeout=0');
  const missing = LINES + 1 - count;
  return [
    goalOf('log lines stored and followed', { at_least: 100_000, unit: '/s' }, count / seconds),
    goalOf('log lines that are missing', { at_most: 0, unit: '' }, missing),
  ];
}

/** Compares the API's times while a server writes 100 MB a second with its times before. */
async function measureFlood(program: Program): Promise<Goal> {
  const game = await makeGame(program.api, program.administrator_token);
  const servers = serversOf(program, game);
  const probe = (name: string) =>
    measureAtRate(name, { count: PROBES, every_ms: PROBE_EVERY_MS }, () =>
      program.api.ok('GET', servers.path, { token: game.cloud_token }),
    );
  await probe('warm-up');
  const calm = await probe('no output');
  const server_id = await servers.run(
    String.raw`while :; do head -c 5000000 /dev/zero | tr "\0" y; echo; sleep 0.04; done`,
  );
  await servers.waitForStart(server_id);
  await Bun.sleep(1_000);
  const flooded = await probe('100 MB/s of output');
  const { destroyed_at } = await servers.get(server_id);
  const lines = await servers.linesOf(server_id, 'std_out');
  if (destroyed_at !== undefined || lines.length === 0) throw new Error('the server did not write until the end');
  await servers.destroy(server_id, '?override_kill_timeout=0');
  report('Reading a server', [calm, flooded]);
  const ratio = percentile(flooded, 0.99) / percentile(calm, 0.99);
  return goalOf('p99 of the API during 100 MB/s of output', { at_most: 2, unit: '×' }, ratio);
}

/** Sums the memory of processes; what several share counts once. */
function memoryGoal(pids: number[]): Goal {
  const kibibytes = pids.map((pid) => {
    try {
      return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
    } catch {
      return 0;
    }
  });
  const mebibytes = kibibytes.reduce((sum, one) => sum + one, 0) / KIBIBYTES_PER_MEBIBYTE;
  return goalOf('memory of the idle service, PostgreSQL and one room', { at_most: 250, unit: 'MiB' }, mebibytes);
}

function goalOf(what: string, limit: { at_most?: number; at_least?: number; unit: string }, value: number): Goal {
  const { at_most, at_least, unit } = limit;
  const figure = `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
  if (at_most !== undefined) return { what, limit: `<= ${at_most} ${unit}`, figure, is_met: value <= at_most };
  return { what, limit: `>= ${at_least} ${unit}`, figure, is_met: value >= (at_least ?? 0) };
}
