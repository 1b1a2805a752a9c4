import { openFiles } from '../meter.ts';
import { atLeast, type Goal, printTable, show } from '../report.ts';
import { startMuster } from './muster.ts';
import type { Plan } from './plan.ts';
import { type PushServer, startBareBun } from './servers.ts';
import {
  coresOf,
  medianOf,
  openWatchedServer,
  type Turn,
  USED_HEADS,
  usedBy,
  type WatchedServer,
  type Way,
} from './watched-server.ts';

const BYTES_BEYOND_BUN_MAX = 8 * 1_024;
const FILES_BACK_WITHIN_MS = 5_000;
/** Tolerance for files that open and close by themselves: connections of the pool, and of probes. */
const FILES_SLACK = 20;
const FEW = 10;
const FEW_CHANGES_PER_SECOND = 200;
const COST_OF_OTHERS_MAX = 1.25;
const MANY_THINGS_MIN = 0.85;

interface Held {
  name: string;
  /** Values for sockets and for polls. */
  bytes_each: number[];
  files_before: number;
  files_after: number;
  back_ms: number;
  one_thing: Turn;
}

/**
 * Measures the memory and files of many silent watchers on fresh servers; for sockets, also the cost of many things.
 */
export async function measureHolding(stack: AsyncDisposableStack, way: Way, plan: Plan): Promise<Goal[]> {
  await using opened = stack.use(new AsyncDisposableStack());
  const muster = await startMuster(opened);
  const bare = opened.use(await startBareBun(muster.template));
  const held: Held[] = [];
  for (const server of [bare, muster]) held.push(await hold(opened, { ways: [way], server, count: plan.many, plan }));
  const goals = printHeld([way], plan.many, held);
  return way === 'polls' ? goals : [...goals, ...(await measureManyThings(opened, plan, [bare, muster], held))];
}

/** Measures sockets and polls together: as many of each as a process may have files for. */
export async function measureHoldingBoth(stack: AsyncDisposableStack, plan: Plan): Promise<Goal[]> {
  await using opened = stack.use(new AsyncDisposableStack());
  const muster = await startMuster(opened);
  const bare = opened.use(await startBareBun(muster.template));
  const ways = ['sockets', 'polls'] as const;
  const held: Held[] = [];
  for (const server of [bare, muster]) held.push(await hold(opened, { ways, server, count: plan.both, plan }));
  return printHeld(ways, plan.both, held);
}

const TITLES = { sockets: 'sockets', polls: 'long polls' };

function printHeld(ways: readonly Way[], count: number, held: Held[]): Goal[] {
  const titles = ways.map((way) => TITLES[way]);
  const title = titles.map((one) => `${show.perSecond(count)} ${one}`).join(' and ');
  printTable(`${title}, held`, [
    ['', ...titles.map((one) => `KiB each of ${one}`), 'files before', 'after', 'back within ms'],
    ...held.map(({ name, bytes_each, files_before, files_after, back_ms }) => [
      name,
      ...bytes_each.map(show.kibibytes),
      String(files_before),
      String(files_after),
      back_ms.toFixed(0),
    ]),
  ]);
  const [bare, muster] = held;
  if (!bare || !muster) throw new Error('the connections were not held by both servers');
  const beyond = muster.bytes_each.map((bytes, index) => bytes - (bare.bytes_each[index] ?? 0));
  return [
    {
      what: `memory of each of ${title}, beyond Bun's own`,
      limit: `<= ${show.kibibytes(BYTES_BEYOND_BUN_MAX)} KiB`,
      figure: beyond.map((bytes) => `${show.kibibytes(bytes)} KiB`).join(', '),
      is_met: beyond.every((bytes) => bytes <= BYTES_BEYOND_BUN_MAX),
    },
    {
      what: `files of ${title} given back`,
      limit: `<= ${FILES_BACK_WITHIN_MS} ms`,
      figure: `${muster.back_ms.toFixed(0)} ms`,
      is_met: muster.back_ms <= FILES_BACK_WITHIN_MS,
    },
  ];
}

interface HoldOptions {
  ways: readonly Way[];
  server: PushServer;
  /** Watchers of each kind. */
  count: number;
  plan: Plan;
}

async function hold(stack: AsyncDisposableStack, { ways, server, count, plan }: HoldOptions): Promise<Held> {
  const files_before = openFiles(server.pid);
  const all_watched: WatchedServer[] = [];
  for (const way of ways) {
    const scenario = { name: `held-${ways.join('-')}-${way}`, topics: 1 };
    all_watched.push(stack.use(await openWatchedServer(server, { way, scenario, watchers: count, ...plan })));
  }
  const turns: Turn[] = [];
  const [first] = all_watched;
  for (let repetition = 0; repetition < plan.repetitions && ways.join() === 'sockets' && first; repetition += 1) {
    turns.push(await first.takeSaturatedTurn({ seconds: plan.saturated_s }));
  }
  await Promise.all(all_watched.map((watched) => watched[Symbol.asyncDispose]()));
  const closed = performance.now();
  const isBack = () => openFiles(server.pid) <= files_before + FILES_SLACK;
  while (!isBack() && performance.now() - closed < 2 * FILES_BACK_WITHIN_MS) await Bun.sleep(50);
  const back_ms = isBack() ? performance.now() - closed : Number.POSITIVE_INFINITY;
  const files_after = openFiles(server.pid);
  const { name } = server;
  const bytes_each = all_watched.map((watched) => watched.bytes_each);
  return { name, bytes_each, files_before, files_after, back_ms, one_thing: medianOf(turns) };
}

/** Measures as many watchers of many things, and a few watchers of one thing, alone and beside them. */
async function measureManyThings(
  stack: AsyncDisposableStack,
  plan: Plan,
  servers: PushServer[],
  held: Held[],
): Promise<Goal[]> {
  const [many_rows, few_rows]: [string[][], string[][]] = [[], []];
  const found: { speed: number; cost: number }[] = [];
  for (const [index, server] of servers.entries()) {
    const alone = await measureFew(stack, server, 'few-alone', plan);
    const scenario = { name: 'many', topics: plan.many / FEW };
    await using watched = stack.use(
      await openWatchedServer(server, { way: 'sockets', scenario, watchers: FEW, ...plan }),
    );
    const turns: Turn[] = [];
    for (let repetition = 0; repetition < plan.repetitions; repetition += 1) {
      turns.push(await watched.takeSaturatedTurn({ seconds: plan.saturated_s }));
    }
    const many = medianOf(turns);
    const among = await measureFew(stack, server, 'few-among', plan);
    const one_thing = held[index]?.one_thing.bodies ?? Number.NaN;
    found.push({ speed: many.bodies / one_thing, cost: among.cost_ms / alone.cost_ms });
    many_rows.push([
      server.name,
      show.perSecond(one_thing),
      show.perSecond(many.bodies),
      show.ratio(many.bodies / one_thing),
      ...usedBy(many),
    ]);
    few_rows.push([
      server.name,
      ...[alone, among].map(({ cost_ms }) => cost_ms.toFixed(2)),
      ...[alone, among].map(({ turn }) => show.milliseconds(turn.p50)),
    ]);
  }
  const things = `${show.perSecond(plan.many / FEW)} things × ${FEW} sockets`;
  const sockets = `${show.perSecond(plan.many)} sockets`;
  printTable(`${sockets}: of one thing, and ${things}`, [
    ['', 'frames/s, one thing', 'many', 'of one', ...USED_HEADS],
    ...many_rows,
  ]);
  printTable(`${FEW} sockets of one thing, alone and beside ${sockets} of others`, [
    ['', 'ms a change, alone', 'beside', 'p50 ms, alone', 'beside'],
    ...few_rows,
  ]);
  const [, muster] = found;
  if (!muster) throw new Error('the connections were not held by both servers');
  return [
    atLeast(`frames/s of ${things}, of one thing × ${sockets}`, MANY_THINGS_MIN, muster.speed),
    {
      what: `processor time of a change with ${FEW} watchers beside ${sockets} of others, of alone`,
      limit: `<= ${show.ratio(COST_OF_OTHERS_MAX)}`,
      figure: show.ratio(muster.cost),
      // Below 0 if other programs disturbed the turn.
      is_met: muster.cost > 0 && muster.cost <= COST_OF_OTHERS_MAX,
    },
  ];
}

/** Returns the server's processor time for a change with few watchers, less its processor time without changes. */
async function measureFew(
  stack: AsyncDisposableStack,
  server: PushServer,
  name: string,
  plan: Plan,
): Promise<{ cost_ms: number; turn: Turn }> {
  const scenario = { name, topics: 1 };
  await using watched = stack.use(
    await openWatchedServer(server, { way: 'sockets', scenario, watchers: FEW, ...plan }),
  );
  const [idle, busy]: [Turn[], Turn[]] = [[], []];
  for (let repetition = 0; repetition < plan.repetitions; repetition += 1) {
    idle.push(await watched.takePacedTurn({ per_second: 1 / plan.paced_s, seconds: plan.paced_s }));
    busy.push(await watched.takePacedTurn({ per_second: FEW_CHANGES_PER_SECOND, seconds: plan.paced_s }));
  }
  const turn = medianOf(busy);
  return { cost_ms: ((coresOf(turn) - coresOf(medianOf(idle))) / turn.changes) * 1_000, turn };
}
