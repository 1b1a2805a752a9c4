// Measures what a game's hostile verification server costs: `bun bench/verification.ts`. For each kind of misbehavior,
// how late after the deadline the player gets an answer; and how long finds of another namespace take while such finds
// wait, beside the same finds without them, by turns.
import { availableParallelism } from 'node:os';
import { deploy, makeGame, uploadScript } from '../tests/support/game.ts';
import { READY_SOURCE } from '../tests/support/lobbies/room.ts';
import { hostileTargets } from '../tests/support/network/hostile-target.ts';
import { type Listener, listenAt } from '../tests/support/network/listener.ts';
import { openStoppedTarget } from '../tests/support/network/stopped-target.ts';
import { commandOf, makeHome, type Program } from '../tests/support/program.ts';
import { waitFor } from '../tests/support/wait.ts';
import { findsIn, openArena } from './matchmaker/arena.ts';
import { startCallers } from './matchmaker/calls.ts';
import { FIND, takeTurn } from './matchmaker/targets.ts';
import { atMost, type Goal, middleOf, printGoals, printTable, show, within } from './report.ts';
import { runBench } from './run.ts';

const FAILED = 'MATCHMAKER_VERIFICATION_FAILED';
const REQUEST_FAILED = 'MATCHMAKER_VERIFICATION_REQUEST_FAILED';
const DEADLINE_MS = 2_000;
const LATE_MS_MAX = 200;
/** Fewer than the failures after which a target gets no requests for a while. */
const FINDS_EACH = 6;

const HANGING = 200;
/** Maximum number of concurrent requests of one namespace; the others wait. */
const UNDER_WAY_MAX = 64;
const REPETITIONS = 9;
const FINDS_PER_SECOND = 200;
const SECONDS = 5;
const CLIENTS = 64;
const SEATS = 1_000_000;

await runBench(async (opened) => {
  console.log(`${availableParallelism()} cores, which all processes share.`);
  printGoals([await measureDeadline(opened), await measureOthers(opened)]);
});

async function measureDeadline(opened: AsyncDisposableStack): Promise<Goal> {
  const settings = { MUSTER_OUTBOUND_ALLOW: '127.0.0.1', MUSTER_VERIFICATION_TIMEOUT_MS: String(DEADLINE_MS) };
  const home = opened.use(await makeHome({ MUSTER_DEMO: 'off', MUSTER_LOG: 'error', ...settings }));
  const program = await home.start({ command: commandOf('source') });
  const stopped = opened.use(await openStoppedTarget());
  const behaviors = [{ behavior: 'accepts no connection', port: stopped.port, outcome: 'timeout' as number | string }];
  for (const [behavior, { serve, outcome }] of Object.entries(hostileTargets('http://127.0.0.5:9/'))) {
    const { port } = opened.use(await listenAt('127.0.0.1', serve));
    behaviors.push({ behavior, port, outcome });
  }
  const find = await makeGameOf(
    program,
    behaviors.map(({ port }) => port),
  );
  // Creates the lobbies of targets that accept players beforehand.
  const accepting = behaviors.flatMap(({ outcome }, mode) => (outcome === 200 ? [mode] : []));
  for (const mode of accepting) await find(mode);

  const rows: string[][] = [];
  let latest_ms = 0;
  for (const [mode, { behavior, outcome }] of behaviors.entries()) {
    const expected = outcome === 200 ? undefined : typeof outcome === 'number' ? FAILED : REQUEST_FAILED;
    const times = await Promise.all(
      Array.from({ length: outcome === 200 ? FINDS_EACH - 1 : FINDS_EACH }, async () => {
        const started = performance.now();
        const code = await find(mode);
        if (code !== expected) throw new Error(`${behavior}: ${code} instead of ${expected}`);
        return performance.now() - started;
      }),
    );
    const worst = Math.max(...times);
    latest_ms = Math.max(latest_ms, worst);
    rows.push([behavior, expected ?? '200', show.milliseconds(middleOf(times)), show.milliseconds(worst)]);
  }
  printTable(`Until the answer, with a deadline of ${DEADLINE_MS} ms; ${FINDS_EACH} finds at a time`, [
    ['', 'answer', 'p50 ms', 'latest ms'],
    ...rows,
  ]);
  return within('the latest answer, after the deadline', LATE_MS_MAX, latest_ms - DEADLINE_MS);
}

async function measureOthers(opened: AsyncDisposableStack): Promise<Goal> {
  const settings = { MUSTER_OUTBOUND_ALLOW: '127.0.0.1', MUSTER_VERIFICATION_TIMEOUT_MS: '60000' };
  const arena = await openArena(opened, { settings });
  const silent = [opened.use(await listenAt('127.0.0.1')), opened.use(await listenAt('127.0.0.1'))];
  const find = await makeGameOf(
    arena.program,
    silent.map(({ port }) => port),
  );
  const callers = opened.use(await startCallers());
  const target = findsIn('Muster', arena, { lobbies: 1, seats: SEATS });
  const measure = () => takeTurn(target, callers, { clients: CLIENTS, seconds: SECONDS, per_second: FINDS_PER_SECOND });
  for (let turn = 0; turn < 3; turn += 1) await measure();
  const alone: { p50_ms: number; p99_ms: number }[] = [];
  const with_hanging: { p50_ms: number; p99_ms: number }[] = [];
  for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
    alone.push(await measure());
    const leaving = new AbortController();
    const before = connectionsOf(silent);
    const stuck = Array.from({ length: HANGING }, (_, index) => find(index % 2, leaving.signal).catch(() => {}));
    await waitFor(() => connectionsOf(silent) - before === UNDER_WAY_MAX, 'as many requests as there may be at a time');
    with_hanging.push(await measure());
    leaving.abort();
    await Promise.all(stuck);
  }
  const rows = [alone, with_hanging].map((all, index) => [
    ['nothing else', `${HANGING} verifications that hang`][index] ?? '',
    ...(['p50_ms', 'p99_ms'] as const).map((part) => middleOf(all.map((one) => one[part])).toFixed(2)),
  ]);
  printTable(`Finds of another namespace, ${FINDS_PER_SECOND} a second, medians of ${REPETITIONS} turns`, [
    ['', 'p50 ms', 'p99 ms'],
    ...rows,
  ]);
  // Compares each turn with the one before, because the machine's speed changes.
  const ratio = middleOf(with_hanging.map(({ p99_ms }, index) => p99_ms / (alone[index]?.p99_ms ?? Number.NaN)));
  return atMost('p99 of finds beside verifications that hang, of that without them', 2, ratio);
}

/**
 * Creates a game with a mode for each port, whose finds are verified there. Returns a function that sends a find and
 * returns the code of its refusal.
 */
async function makeGameOf({ api, administrator_token }: Program, ports: number[]) {
  const game = await makeGame(api, administrator_token);
  const image_id = await uploadScript(api, game, READY_SOURCE);
  const verified = (port: number) => ({
    actions: { find: { enabled: true, verification_config: { url: `http://127.0.0.1:${port}/` } } },
  });
  await deploy(api, game, {
    game_modes: Object.fromEntries(ports.map((port, mode) => [`mode-${mode}`, verified(port)])),
    max_players: 100,
    docker: { image_id, ports: { game: { port: 80, protocol: 'http' } } },
  });
  return async (mode: number, signal?: AbortSignal): Promise<string | undefined> => {
    const body = { game_modes: [`mode-${mode}`] };
    const request = { token: game.public_token, body, ...(signal ? { signal } : {}) };
    return (await api.call('POST', FIND.path, request)).body.code;
  };
}

function connectionsOf(listeners: Listener[]): number {
  return listeners.reduce((sum, { connections }) => sum + connections, 0);
}
