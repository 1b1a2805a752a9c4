import { HOUR_MS, MINUTE_MS } from '../../shared/units.ts';
import type { Answer } from './api.ts';

/** What was counted in a namespace, in steps of time. */
export const COUNTERS = '/cloud/games/{game_id}/namespaces/{namespace_id}/counters';

export type Counted = Answer<typeof COUNTERS, 'get'>;
type Step = Counted['steps'][number];

/** How long after its end a minute is stored, at most. */
const STORED_WITHIN_MS = 5_000;
/** The periods that can be shown, with their lengths. */
export const PERIODS = { hour: HOUR_MS, day: 24 * HOUR_MS, week: 7 * 24 * HOUR_MS } as const;
export type CounterPeriod = keyof typeof PERIODS;

/** Lines over time: the start of each step in Unix milliseconds, and the values there. */
export interface Lines {
  times: number[];
  players: number[];
  lobbies: number[];
}

/** Returns the start of the step that has the latest minute whose counts are stored. */
export function latestStep(step_ms: number, now: number): number {
  return Math.floor((now - STORED_WITHIN_MS - MINUTE_MS) / step_ms) * step_ms;
}

/** Returns the lines of a period that ends with what is stored. The service leaves out steps in which nothing happened. */
export function linesOf({ step_ms, steps }: Counted, period: CounterPeriod, now: number): Lines {
  const by_time = new Map(steps.map((step) => [Date.parse(step.start_ts), step]));
  const last = latestStep(step_ms, now);
  const count = PERIODS[period] / step_ms;
  const times = Array.from({ length: count }, (_, index) => last - (count - 1 - index) * step_ms);
  const valuesOf = (read: (step: Step) => number) =>
    times.map((time) => {
      const step = by_time.get(time);
      return step ? read(step) : 0;
    });
  return { times, players: valuesOf(({ players }) => players), lobbies: valuesOf(({ lobbies }) => lobbies) };
}

/** Returns the steps that began within the period that ends now. Those of an answer grow older while it is shown. */
export function stepsWithin<Counts extends Pick<Step, 'start_ts'>>(
  steps: Counts[],
  period: CounterPeriod,
  now: number,
): Counts[] {
  return steps.filter(({ start_ts }) => now - Date.parse(start_ts) < PERIODS[period]);
}

/** Returns how many requests were refused, by the code of their error, the most frequent first. */
export function refusalsOf(steps: Pick<Step, 'refused'>[]): [code: string, count: number][] {
  const counts = new Map<string, number>();
  for (const { refused } of steps) {
    for (const [code, count] of Object.entries(refused)) counts.set(code, (counts.get(code) ?? 0) + count);
  }
  return [...counts].sort(([, one], [, other]) => other - one);
}
