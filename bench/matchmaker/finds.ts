import { atLeast, type Goal, printTable, show, within } from '../report.ts';
import type { Callers } from './calls.ts';
import type { Plan } from './plan.ts';
import { cellsOf, medianOf, type Target, TURN_HEADS, type Turn, takeTurn } from './targets.ts';

/** Limits of the processor time of a find, in microseconds. */
const THREAD_US_MAX = 45;
const DATABASE_US_MAX = 14;
const REST_US_MAX = 6;
/** How much two identical copies may differ; if they differ more, the other ratios of the run mean nothing. */
const COPIES_DIFFER_MAX = 0.1;

/** The servers to measure by turns. */
export interface Targets {
  elysia: Target;
  muster: Target;
  /** An identical copy of the service. */
  copy: Target;
  bun: Target;
  colyseus: Target | undefined;
}

/** The median turn of each target, by the number of clients. */
export interface Finds {
  turnOf(target: Target, clients: number): Turn;
}

export async function warmUp(targets: Targets, callers: Callers, { warm_s: seconds }: Plan): Promise<void> {
  for (const target of listTargets(targets)) await takeTurn(target, callers, { clients: 64, seconds });
}

/** Measures finds as fast as they are answered. */
export async function measureFinds(targets: Targets, callers: Callers, plan: Plan): Promise<Finds> {
  const medians = new Map<string, Turn>();
  const turnOf = (target: Target, clients: number): Turn => {
    const turn = medians.get(`${target.name}, ${clients}`);
    if (!turn) throw new Error(`${target.name} was not measured with ${clients} clients`);
    return turn;
  };
  for (const clients of plan.clients) {
    const all = listTargets(targets).map((target) => ({ target, turns: [] as Turn[] }));
    for (let repetition = 0; repetition < plan.repetitions; repetition += 1) {
      for (const { target, turns } of all) {
        turns.push(await takeTurn(target, callers, { clients, seconds: plan.seconds }));
      }
    }
    for (const { target, turns } of all) medians.set(`${target.name}, ${clients}`, medianOf(turns));
    const empty = turnOf(targets.elysia, clients);
    const rows = all.map(({ target }) => [target.name, ...cellsOf(turnOf(target, clients), empty)]);
    printTable(`Finds, ${clients} clients`, [['', ...TURN_HEADS], ...rows]);
  }
  return { turnOf };
}

export function findGoals({ elysia, muster, colyseus }: Targets, { turnOf }: Finds): Goal[] {
  const ratioTo = (peer: Target, clients: number) =>
    turnOf(muster, clients).per_second / turnOf(peer, clients).per_second;
  return [
    processorGoal(turnOf(muster, 256)),
    atLeast("finds/s of Elysia's empty route, 256 clients", 0.45, ratioTo(elysia, 256)),
    atLeast("finds/s of Elysia's empty route, 64 clients", 0.3, ratioTo(elysia, 64)),
    ...(colyseus
      ? [
          atLeast('finds/s of Colyseus on Bun, 256 clients', 2.5, ratioTo(colyseus, 256)),
          atLeast('finds/s of Colyseus on Bun, 64 clients', 1.7, ratioTo(colyseus, 64)),
        ]
      : []),
    within('one client alone, p50', 1.1, turnOf(muster, 1).p50_ms),
  ];
}

function processorGoal({ thread, database, rest }: Turn): Goal {
  const [thread_us, database_us, rest_us] = [thread, database, rest].map((seconds) => seconds * 1e6) as [
    number,
    number,
    number,
  ];
  return {
    what: 'processor time of a find, 256 clients: thread + PostgreSQL + rest of the service',
    limit: `<= ${THREAD_US_MAX} + ${DATABASE_US_MAX} + ${REST_US_MAX} µs`,
    figure: `${[thread, database, rest].map(show.microseconds).join(' + ')} µs`,
    is_met: thread_us <= THREAD_US_MAX && database_us <= DATABASE_US_MAX && rest_us <= REST_US_MAX,
  };
}

/** Compares the service with its copy: the difference is the noise of the run. */
export function comparisonOfCopies({ muster, copy }: Targets, { turnOf }: Finds): Goal {
  const ratios = [256, 64].map((clients) => turnOf(copy, clients).per_second / turnOf(muster, clients).per_second);
  const is_met = ratios.every((ratio) => Math.abs(ratio - 1) <= COPIES_DIFFER_MAX);
  return {
    what: 'A/A: finds/s of an identical copy of the service, 256 and 64 clients',
    limit: `within ${COPIES_DIFFER_MAX * 100} %`,
    figure: ratios.map(show.ratio).join(', '),
    is_met,
  };
}

function listTargets({ elysia, muster, copy, bun, colyseus }: Targets): Target[] {
  return [elysia, muster, copy, bun, ...(colyseus ? [colyseus] : [])];
}
