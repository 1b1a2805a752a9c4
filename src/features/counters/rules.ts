import type { CounterRow, Counts } from './tables.ts';

/** How much longer the times of a bucket are than those of the one before: a percentile is at most this much too long. */
const GROWTH = 1.1;

export function emptyCounts(): Counts {
  return { players: 0, lobbies: 0, seated: { find: 0, join: 0, create: 0 }, refused: {}, find_times: {} };
}

/** Returns the bucket of a time. Bucket 0 has all times up to 1 ms. */
export function bucketOf(duration_ms: number): number {
  return duration_ms <= 1 ? 0 : Math.ceil(Math.log(duration_ms) / Math.log(GROWTH));
}

/** Returns the time that this share of all times does not exceed; undefined without any. */
export function percentileOf(find_times: Counts['find_times'], share: number): number | undefined {
  const buckets = Object.entries(find_times)
    .map(([bucket, count]) => [Number(bucket), count] as const)
    .sort(([one], [other]) => one - other);
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  let left = Math.ceil(total * share);
  for (const [bucket, count] of buckets) {
    left -= count;
    if (left <= 0) return Math.round(GROWTH ** bucket * 10) / 10;
  }
  return undefined;
}

/** Returns the counts of two parts of one time, such as those of two processes. */
export function merge(one: Counts, other: Counts): Counts {
  return {
    players: Math.max(one.players, other.players),
    lobbies: Math.max(one.lobbies, other.lobbies),
    seated: {
      find: one.seated.find + other.seated.find,
      join: one.seated.join + other.seated.join,
      create: one.seated.create + other.seated.create,
    },
    refused: addUp(one.refused, other.refused),
    find_times: addUp(one.find_times, other.find_times),
  };
}

function addUp(one: Record<string, number>, other: Record<string, number>): Record<string, number> {
  const sum = { ...one };
  for (const [name, count] of Object.entries(other)) sum[name] = (sum[name] ?? 0) + count;
  return sum;
}

/** Merges rows into the counts of each step of time, oldest first. Steps without rows are left out. */
export function bySteps(rows: CounterRow[], step_ms: number): { start_ts: Date; counts: Counts }[] {
  const steps = new Map<number, Counts>();
  for (const { start_ts, ...counts } of rows) {
    const start = startOfStep(start_ts, step_ms).getTime();
    steps.set(start, merge(steps.get(start) ?? emptyCounts(), counts));
  }
  return [...steps]
    .sort(([one], [other]) => one - other)
    .map(([start, counts]) => ({ start_ts: new Date(start), counts }));
}

/** Returns when the step of a moment began. */
export function startOfStep(moment: Date, step_ms: number): Date {
  return new Date(Math.floor(moment.getTime() / step_ms) * step_ms);
}
