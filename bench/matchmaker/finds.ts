import { processorSeconds } from '../meter.ts';
import { type Goal, middleOf, printTable, show } from '../report.ts';
import type { Arena } from './arena.ts';
import type { Called, Callers } from './calls.ts';
import type { Peer } from './peers.ts';
import type { Plan } from './plan.ts';

export const FIND_PATH = '/matchmaker/lobbies/find';
const SETTLE_S = 0.3;
export const FIND_BODY = JSON.stringify({ game_modes: ['default'] });

/** One that is asked for seats. */
interface Target {
  name: string;
  pid: number;
  port: number;
  path: string;
  headers: string;
  body: string;
  prepare(): Promise<void>;
}

/** What one target has shown with so many clients. */
interface Shown {
  per_second: number;
  p50: number;
  p99: number;
  /** Seconds of its processor time for each. */
  each_s: number;
}

interface FindsOptions {
  arenas: Arena[];
  bare: Peer[];
  colyseus: Peer | undefined;
  callers: Callers;
  plan: Plan;
}

/** Finds, as fast as they are answered; and at half of that, how late the last of a hundred is. */
export async function measureFinds({ arenas, bare, colyseus, callers, plan }: FindsOptions): Promise<Goal[]> {
  const peers = [...bare, ...(colyseus ? [colyseus] : [])].map(
    (peer): Target => ({ ...peer, headers: '', prepare: async () => {} }),
  );
  const musters = arenas.map((arena): Target => targetOf(arena, () => arena.reset(plan)));
  const targets = [...peers.slice(0, 1), ...musters, ...peers.slice(1)];
  for (const target of targets) await callOf(target, callers, { clients: 64, seconds: plan.warm_s });
  const shown = new Map<string, Shown>();
  for (const clients of plan.clients) {
    const runs = targets.map((): Shown[] => []);
    for (let round = 0; round < plan.rounds; round += 1) {
      for (const [index, target] of targets.entries()) runs[index]?.push(await measure(target, callers, clients, plan));
    }
    for (const [index, target] of targets.entries())
      shown.set(`${target.name} ${clients}`, medianOf(runs[index] ?? []));
  }
  const [limit, ...others] = targets;
  const [muster] = musters;
  if (!limit || !muster) return [];
  const of = (target: Target, clients: number) => shown.get(`${target.name} ${clients}`) ?? NOTHING;
  for (const clients of plan.clients) {
    const rows = [limit, ...others].map((target) => {
      const { per_second, p50, p99, each_s } = of(target, clients);
      const ratio = show.ratio(per_second / of(limit, clients).per_second);
      const times = [p50, p99].map((value) => value.toFixed(2));
      return [target.name, show.perSecond(per_second), ratio, ...times, show.microseconds(each_s)];
    });
    printTable(`Finds, ${clients} clients`, [['', 'a second', 'of Elysia', 'p50 ms', 'p99 ms', 'µs each'], ...rows]);
  }
  const half = await measureHalf(muster, callers, of(muster, 64).per_second / 2, plan);
  const ratioTo = (other: Target, clients: number) => of(muster, clients).per_second / of(other, clients).per_second;
  const rival = targets.find(({ name }) => name === colyseus?.name);
  return [
    atLeast('finds of the empty route, 256 clients', 0.5, ratioTo(limit, 256)),
    atLeast('finds of the empty route, 64 clients', 0.4, ratioTo(limit, 64)),
    ...(rival ? [atLeast('finds of Colyseus, 64 clients', 3, ratioTo(rival, 64))] : []),
    atMost('one client alone, p50', 1, of(muster, 1).p50),
    atMost('p99 at half of the load of 64 clients', 10, half),
  ];
}

export function targetOf(arena: Arena, prepare: () => Promise<void>): Target {
  const { name, pid, port, headers } = arena;
  return { name, pid, port, path: FIND_PATH, headers, body: FIND_BODY, prepare };
}

export async function callOf(
  { port, path, headers, body, prepare }: Target,
  callers: Callers,
  { clients, ...load }: { clients: number; seconds: number; per_second?: number; count_max?: number; keeps?: boolean },
): Promise<Called> {
  await prepare();
  await callers.open(port, clients);
  const calls = { path, headers, bodies: [body], count_max: Number.MAX_SAFE_INTEGER, ...load };
  // All lobbies have just been emptied, which is read once.
  await callers.call({ ...calls, seconds: SETTLE_S });
  const called = await callers.call(calls);
  assertAnswered(called);
  return called;
}

/** What was refused would be counted as done. */
export function assertAnswered({ failures }: Called): void {
  if (Object.keys(failures).length > 0) throw new Error(`not answered as it should be: ${JSON.stringify(failures)}`);
}

async function measure(target: Target, callers: Callers, clients: number, { seconds }: Plan): Promise<Shown> {
  const before = processorSeconds(target.pid);
  const called = await callOf(target, callers, { clients, seconds });
  const { answered, p50, p99 } = called;
  const each_s = (processorSeconds(target.pid) - before) / answered;
  return { per_second: answered / called.seconds, p50, p99, each_s };
}

async function measureHalf(target: Target, callers: Callers, per_second: number, plan: Plan): Promise<number> {
  const late: number[] = [];
  for (let round = 0; round < plan.rounds; round += 1) {
    late.push((await callOf(target, callers, { clients: 64, seconds: plan.seconds, per_second })).p99);
  }
  return middleOf(late);
}

const NOTHING: Shown = { per_second: Number.NaN, p50: Number.NaN, p99: Number.NaN, each_s: Number.NaN };

function medianOf(runs: Shown[]): Shown {
  const middle = (name: keyof Shown) => middleOf(runs.map((run) => run[name]));
  return { per_second: middle('per_second'), p50: middle('p50'), p99: middle('p99'), each_s: middle('each_s') };
}

export function atLeast(what: string, limit: number, value: number): Goal {
  return { what, limit: `>= ${show.ratio(limit)}`, figure: show.ratio(value), is_met: value >= limit };
}

export function atMost(what: string, limit_ms: number, value: number): Goal {
  return { what, limit: `<= ${limit_ms} ms`, figure: `${value.toFixed(2)} ms`, is_met: value <= limit_ms };
}
