import type { Goal } from '../report.ts';
import { percentile } from '../samples.ts';
import type { Latencies } from './probe.ts';
import type { Subject, SubjectOptions } from './subject.ts';

/** A way in which a tenant, a request or the machine harms the service. */
export interface Fault {
  name: string;
  /** What happens, in one line. */
  title: string;
  /** Why it cannot run on this machine, in one line. The run fails then, unless other faults are named. */
  obstacle?(): string | undefined;
  run(context: FaultContext): Promise<void>;
}

/** What a fault gets to run. Everything opened here is closed when the fault ends or fails. */
export interface FaultContext {
  is_quick: boolean;
  opened: AsyncDisposableStack;
  /** Starts the service with a game that the fault must not touch. */
  start(options?: SubjectOptions): Promise<Subject>;
  /** Measures the service while the work runs, and expects it to answer all requests in time. */
  phase<Result>(
    subject: Subject,
    name: string,
    work: () => Promise<Result>,
    options?: PhaseOptions,
  ): Promise<Phase<Result>>;
  /** Waits for work until its deadline. */
  within<Result>(deadline_s: number, what: string, work: Promise<Result>): Promise<Result>;
  /** Records a figure of the fault itself. */
  note(what: string, figure: string): void;
  /** Records a figure and its limit. */
  expect(goal: Goal): void;
}

export interface PhaseOptions {
  deadline_s?: number;
  /** The limits of the p99 of `/health/live`, and of finds. */
  live_ms_max?: number;
  find_ms_max?: number;
  /** Whether the database cannot write meanwhile, so that finds may fail. */
  has_no_database?: boolean;
}

export interface Phase<Result> {
  result: Result;
  live: Latencies;
  find: Latencies;
}

/** The length of a calm phase, and of the phase after a fault. */
export const CALM_S = 5;

export const calm = async () => await Bun.sleep(CALM_S * 1_000);

/** Seconds since a moment of `performance.now()`. */
export const secondsSince = (started: number): number => (performance.now() - started) / 1_000;

export function atMost(what: string, limit: number, figure: number, unit: string): Goal {
  return { what, limit: `<= ${limit} ${unit}`, figure: `${round(figure)} ${unit}`, is_met: figure <= limit };
}

export function exactly(what: string, wanted: number, figure: number): Goal {
  return { what, limit: String(wanted), figure: String(figure), is_met: figure === wanted };
}

export function holds(what: string, is_met: boolean, { figure = is_met ? 'yes' : 'no' } = {}): Goal {
  return { what, limit: 'yes', figure, is_met };
}

/** Returns a goal: all requests of a phase are answered with 200, and 99 of 100 in time. */
export function allAnswered(what: string, latencies: Latencies, limit_ms: number): Goal {
  const [p99, failed] = [percentile(latencies, 0.99), failuresOf(latencies)];
  return {
    what,
    limit: `all 200, p99 <= ${limit_ms} ms`,
    figure: `${failed === 0 ? '' : `${failed} failed, `}${round(p99)} ms`,
    // Without a single answer, the p99 is not a number.
    is_met: failed === 0 && p99 <= limit_ms,
  };
}

function round(value: number): string {
  return value.toFixed(value < 10 ? 1 : 0);
}

/** Counts the requests without a 200. */
export function failuresOf({ failures }: Latencies): number {
  return Object.values(failures).reduce((sum, count) => sum + count, 0);
}

/** Runs pieces of work, at most `concurrency` at a time. */
export async function runConcurrently(work: (() => Promise<void>)[], concurrency: number): Promise<void> {
  const left = [...work];
  const next = async () => {
    for (let piece = left.shift(); piece; piece = left.shift()) await piece();
  };
  await Promise.all(Array.from({ length: concurrency }, next));
}
