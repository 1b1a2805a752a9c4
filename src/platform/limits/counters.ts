import { LRUCache } from 'lru-cache';
import type { Limit } from './limit.ts';

/** A count of a window: whether one more was in it. */
export interface Verdict {
  is_within: boolean;
  limit: number;
  remaining: number;
  /** When the window ends, in milliseconds since 1970, and in how many that is. */
  reset_at: number;
  reset_in_ms: number;
}

/** Counts by fixed windows, in the memory of this process. */
export interface Counters {
  /** Counts one more of somebody. */
  count(limit: Limit, who: string): Verdict;
  /** How many counts are kept. */
  readonly size: number;
}

interface Count {
  used: number;
  reset_at: number;
}

/**
 * About 20 MB when full. Those that were not asked for the longest time are forgotten first: who has as many addresses has
 * as many limits as he likes, and takes nobody else's.
 */
export const COUNTS_MAX = 100_000;

/** Counters that know the time from `now`, in milliseconds since 1970. They make no promise and set no timer. */
export function createCounters(now: () => number): Counters {
  const counts = new LRUCache<string, Count>({ max: COUNTS_MAX });

  return {
    count({ name, requests, window_ms }, who) {
      const key = `${name} ${who}`;
      const moment = now();
      const reset_at = (Math.floor(moment / window_ms) + 1) * window_ms;
      let count = counts.get(key);
      // Of another window: an earlier one, or a later one where the clock was set back.
      if (count?.reset_at !== reset_at) {
        count = { used: 0, reset_at };
        counts.set(key, count);
      }
      // No further: what is refused needs no number.
      const is_within = count.used < requests;
      if (is_within) count.used += 1;
      return { is_within, limit: requests, remaining: requests - count.used, reset_at, reset_in_ms: reset_at - moment };
    },
    get size() {
      return counts.size;
    },
  };
}
