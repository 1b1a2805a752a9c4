import { openFiles } from '../meter.ts';
import { type Goal, printTable, show } from '../report.ts';
import { startMuster } from './muster.ts';
import type { Plan } from './plan.ts';
import { type PushServer, startBareBun } from './servers.ts';
import { medianOf, openTrial, type Run, type Trial, type Way } from './trial.ts';

const BYTES_BEYOND_BUN_MAX = 8 * 1_024;
const FILES_BACK_WITHIN_MS = 5_000;
/** Files that come and go by themselves: connections of the pool, and of those who ask whether it is ready. */
const FILES_SLACK = 20;
const FEW = 10;
const FEW_CHANGES_PER_SECOND = 200;
const COST_OF_OTHERS_MAX = 1.25;
const MANY_THINGS_MIN = 0.9;

interface Held {
  name: string;
  /** Of each way. */
  bytes_each: number[];
  files_before: number;
  files_after: number;
  back_ms: number;
  one_thing: Run;
}

/** What many cost who only hold on: memory, and files; on fresh servers. And what it costs that there are so many. */
export async function measureHolding(way: Way, plan: Plan): Promise<Goal[]> {
  await using opened = new AsyncDisposableStack();
  const muster = opened.use(await startMuster());
  const bare = opened.use(await startBareBun(muster.template));
  const held: Held[] = [];
  for (const server of [bare, muster]) held.push(await hold([way], server, plan.many, plan));
  const goals = printHeld([way], plan.many, held);
  return way === 'polls' ? goals : [...goals, ...(await measureManyThings(plan, [bare, muster], held))];
}

/** The same of sockets and polls at the same time: as many of each as a process may have files for. */
export async function measureHoldingBoth(plan: Plan): Promise<Goal[]> {
  await using opened = new AsyncDisposableStack();
  const muster = opened.use(await startMuster());
  const bare = opened.use(await startBareBun(muster.template));
  const ways = ['sockets', 'polls'] as const;
  const held: Held[] = [];
  for (const server of [bare, muster]) held.push(await hold(ways, server, plan.both, plan));
  return printHeld(ways, plan.both, held);
}

const TITLES = { sockets: 'sockets', polls: 'long polls' };

function printHeld(ways: readonly Way[], count: number, held: Held[]): Goal[] {
  const titles = ways.map((way) => TITLES[way]);
  const title = titles.map((one) => `${show.perSecond(count)} ${one}`).join(' and ');
  printTable(`${title} that hold on`, [
    ['', ...titles.map((one) => `KB each of ${one}`), 'files before', 'after', 'back within ms'],
    ...held.map(({ name, bytes_each, files_before, files_after, back_ms }) => [
      name,
      ...bytes_each.map(show.kilobytes),
      String(files_before),
      String(files_after),
      back_ms.toFixed(0),
    ]),
  ]);
  const [of_bare, of_muster] = held;
  if (!of_bare || !of_muster) return [];
  const beyond = of_muster.bytes_each.map((bytes, index) => bytes - (of_bare.bytes_each[index] ?? 0));
  return [
    {
      what: `memory of each of ${title}, beyond Bun's own`,
      limit: `<= ${show.kilobytes(BYTES_BEYOND_BUN_MAX)} KB`,
      figure: beyond.map((bytes) => `${show.kilobytes(bytes)} KB`).join(', '),
      is_met: beyond.every((bytes) => bytes <= BYTES_BEYOND_BUN_MAX),
    },
    {
      what: `files of ${title} given back`,
      limit: `<= ${FILES_BACK_WITHIN_MS} ms`,
      figure: `${of_muster.back_ms.toFixed(0)} ms`,
      is_met: of_muster.back_ms <= FILES_BACK_WITHIN_MS,
    },
  ];
}

async function hold(ways: readonly Way[], server: PushServer, count: number, plan: Plan): Promise<Held> {
  const files_before = openFiles(server.pid);
  const trials: Trial[] = [];
  for (const way of ways) {
    const scenario = { name: `held-${ways.join('-')}-${way}`, topics: 1 };
    trials.push(await openTrial(server, { way, scenario, watchers: count, ...plan }));
  }
  const runs: Run[] = [];
  const [first] = trials;
  for (let round = 0; round < plan.rounds && ways.join() === 'sockets' && first; round += 1) {
    runs.push(await first.runSaturated({ seconds: plan.saturated_s }));
  }
  await Promise.all(trials.map((trial) => trial[Symbol.asyncDispose]()));
  const closed = performance.now();
  const isBack = () => openFiles(server.pid) <= files_before + FILES_SLACK;
  while (!isBack() && performance.now() - closed < 2 * FILES_BACK_WITHIN_MS) await Bun.sleep(50);
  const back_ms = isBack() ? performance.now() - closed : Number.POSITIVE_INFINITY;
  const files_after = openFiles(server.pid);
  const { name } = server;
  const bytes_each = trials.map((trial) => trial.bytes_each);
  return { name, bytes_each, files_before, files_after, back_ms, one_thing: medianOf(runs) };
}

/** As many watchers, of many things; and a few of one thing while they are there. */
async function measureManyThings(plan: Plan, servers: PushServer[], held: Held[]): Promise<Goal[]> {
  const rows: string[][] = [];
  const found: { speed: number; cost: number }[] = [];
  for (const [place, server] of servers.entries()) {
    const alone = await measureFew(server, 'few-alone', plan);
    await using trial = await openTrial(server, {
      way: 'sockets',
      scenario: { name: 'many', topics: plan.many / FEW },
      watchers: FEW,
      ...plan,
    });
    const runs: Run[] = [];
    for (let round = 0; round < plan.rounds; round += 1) {
      runs.push(await trial.runSaturated({ seconds: plan.saturated_s }));
    }
    const many = medianOf(runs);
    const among = await measureFew(server, 'few-among', plan);
    const one_thing = held[place]?.one_thing.bodies ?? Number.NaN;
    found.push({ speed: many.bodies / one_thing, cost: among.cost_ms / alone.cost_ms });
    rows.push([
      server.name,
      show.perSecond(one_thing),
      show.perSecond(many.bodies),
      show.ratio(many.bodies / one_thing),
      show.cores(many.cores),
      show.cores(many.database_cores),
      alone.cost_ms.toFixed(2),
      among.cost_ms.toFixed(2),
      show.milliseconds(alone.run.p50),
      show.milliseconds(among.run.p50),
    ]);
  }
  const things = `${plan.many / FEW} things x ${FEW}`;
  const title = `${show.perSecond(plan.many)} sockets: of one thing, and of ${things}; ${FEW} sockets of one thing, alone and among ${show.perSecond(plan.many)} of others`;
  const heads = [
    'frames/s, one',
    'many',
    'of one',
    'cores',
    'PostgreSQL',
    'ms a change, alone',
    'among',
    'p50 ms, alone',
    'among',
  ];
  printTable(title, [['', ...heads], ...rows]);
  const [, muster] = found;
  if (!muster) return [];
  return [
    {
      what: `frames/s of ${things} watchers, of those of 1 x ${plan.many}`,
      limit: `>= ${show.ratio(MANY_THINGS_MIN)}`,
      figure: show.ratio(muster.speed),
      is_met: muster.speed >= MANY_THINGS_MIN,
    },
    {
      what: `processor time of a change with ${FEW} watchers, among ${show.perSecond(plan.many)} others`,
      limit: `<= ${show.ratio(COST_OF_OTHERS_MAX)}`,
      figure: show.ratio(muster.cost),
      // Less than nothing: others used the processor, and it says nothing.
      is_met: muster.cost > 0 && muster.cost <= COST_OF_OTHERS_MAX,
    },
  ];
}

/** Milliseconds of the server's processor for a change that few watch, without what it costs when nothing changes. */
async function measureFew(server: PushServer, name: string, plan: Plan): Promise<{ cost_ms: number; run: Run }> {
  await using trial = await openTrial(server, {
    way: 'sockets',
    scenario: { name, topics: 1 },
    watchers: FEW,
    ...plan,
  });
  const [idle, busy]: [Run[], Run[]] = [[], []];
  for (let round = 0; round < plan.rounds; round += 1) {
    idle.push(await trial.runPaced({ per_second: 1 / plan.paced_s, seconds: plan.paced_s }));
    busy.push(await trial.runPaced({ per_second: FEW_CHANGES_PER_SECOND, seconds: plan.paced_s }));
  }
  const run = medianOf(busy);
  return { cost_ms: ((run.cores - medianOf(idle).cores) / run.changes) * 1_000, run };
}
