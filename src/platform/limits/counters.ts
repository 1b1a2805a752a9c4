import { LRUCache } from 'lru-cache';
import type { Limit } from './limit.ts';

/** The result of counting one request in a window. */
export interface Verdict {
  is_within: boolean;
  limit: number;
  remaining: number;
  /** When the window ends, as Unix time and from now, in milliseconds. */
  reset_at: number;
  reset_in_ms: number;
}

/** Counts requests in fixed windows, in the memory of this process. */
export interface Counters {
  /** Counts one more request under a key. */
  count(limit: Limit, caller_key: string): Verdict;
  /** The number of counts in memory. */
  readonly size: number;
}

interface Count {
  used: number;
  reset_at: number;
}

/**
 * About 20 MB when full. The least recently used counts are dropped first. A client with enough addresses to fill it
 * evades its limits anyway, and does not affect the counts of active clients.
 */
export const COUNTS_MAX = 100_000;

/** Creates counters. `now`: the time in Unix milliseconds. Counting uses no promise and no timer. */
export function createCounters(now: () => number): Counters {
  const counts = new LRUCache<string, Count>({ max: COUNTS_MAX });

  return {
    count({ name, requests, window_ms }, caller_key) {
      const key = `${name} ${caller_key}`;
      const moment = now();
      const reset_at = (Math.floor(moment / window_ms) + 1) * window_ms;
      let count = counts.get(key);
      // Starts over in another window: the next one, or an earlier one if the clock was set back.
      if (count?.reset_at !== reset_at) {
        count = { used: 0, reset_at };
        counts.set(key, count);
      }
      // Refused requests are not counted.
      const is_within = count.used < requests;
      if (is_within) count.used += 1;
      return { is_within, limit: requests, remaining: requests - count.used, reset_at, reset_in_ms: reset_at - moment };
    },
    get size() {
      return counts.size;
    },
  };
}
