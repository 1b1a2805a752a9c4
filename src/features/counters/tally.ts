import { MINUTE_MS } from '../../platform/units.ts';
import type { SeatRequestKind } from '../seat-request-kinds.ts';
import { bucketOf, emptyCounts, startOfStep } from './rules.ts';
import type { Counts } from './tables.ts';

/** Maximum number of namespaces to count in a minute. Further ones are not counted. */
const NAMESPACES_MAX = 20_000;

/** What a namespace has counted in a minute. */
export interface CountedMinute {
  namespace_id: string;
  start_ts: Date;
  /** Identifies these counts. If the clock is set back, a minute may have counts twice. */
  counted_by: string;
  counts: Counts;
}

/** What all namespaces have counted since the start of the process. */
export interface Totals {
  seated: Record<SeatRequestKind, number>;
  /** By the code of the error. */
  refused: Map<string, number>;
}

export type Tally = ReturnType<typeof createTally>;

/** Counts requests for seats in memory, by namespace and minute. Counting is on the path of every find. */
export function createTally(now: () => number) {
  let minute = startOfStep(new Date(now()), MINUTE_MS).getTime();
  let current = new Map<string, Counts>();
  let complete: CountedMinute[] = [];
  const totals: Totals = { seated: { find: 0, join: 0, create: 0 }, refused: new Map() };

  function close(): void {
    const start_ts = new Date(minute);
    const counted_by = crypto.randomUUID();
    for (const [namespace_id, counts] of current) complete.push({ namespace_id, start_ts, counted_by, counts });
    current = new Map();
  }

  /** Closes the current minute when it is over, and begins another. */
  function moveOn(): void {
    const moment = now();
    if (moment >= minute && moment < minute + MINUTE_MS) return;
    close();
    minute = startOfStep(new Date(moment), MINUTE_MS).getTime();
  }

  function countsOf(namespace_id: string): Counts | undefined {
    moveOn();
    const known = current.get(namespace_id);
    if (known || current.size >= NAMESPACES_MAX) return known;
    const counts = emptyCounts();
    current.set(namespace_id, counts);
    return counts;
  }

  return {
    /** Counts a request that got its seats. */
    countSeated(namespace_id: string, kind: SeatRequestKind, duration_ms: number): void {
      totals.seated[kind] += 1;
      const counts = countsOf(namespace_id);
      if (!counts) return;
      counts.seated[kind] += 1;
      if (kind !== 'find') return;
      const bucket = bucketOf(duration_ms);
      counts.find_times[bucket] = (counts.find_times[bucket] ?? 0) + 1;
    },
    /** Counts a refused request by the code of its error. */
    countRefused(namespace_id: string, code: string): void {
      totals.refused.set(code, (totals.refused.get(code) ?? 0) + 1);
      const counts = countsOf(namespace_id);
      if (counts) counts.refused[code] = (counts.refused[code] ?? 0) + 1;
    },
    totals: (): Readonly<Totals> => totals,
    /** Returns the minutes that are over and were not taken yet. With `is_last`, also the one that is not over. */
    take({ is_last }: { is_last: boolean }): CountedMinute[] {
      if (is_last) close();
      else moveOn();
      const taken = complete;
      complete = [];
      return taken;
    },
    /** Gives back minutes that could not be stored. */
    giveBack(minutes: CountedMinute[]): void {
      complete = [...minutes, ...complete].slice(0, NAMESPACES_MAX);
    },
  };
}
