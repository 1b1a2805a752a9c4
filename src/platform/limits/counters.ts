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

/**
 * Maximum number of counts, which take 9.6 MB. A client with enough addresses to fill it evades its limits anyway, and
 * does not affect the counts of active clients. A quarter of it can be in use before a group has too many.
 */
export const COUNTS_MAX = 400_000;
/** Slots of a group. The count of a key is in one slot of the key's group. */
const GROUP_SIZE = 16;
const GROUPS = COUNTS_MAX / GROUP_SIZE;

/**
 * Creates counters. `now`: the time in Unix milliseconds. Counting uses no promise and no timer. The counts are numbers
 * in fixed arrays, because a garbage collection would look at each of as many objects (docs/decisions/0053).
 */
export function createCounters(now: () => number): Counters {
  // Secret, so that no client knows which keys share a group.
  const [group_seed = 0, key_seed = 0] = crypto.getRandomValues(new Uint32Array(2));
  const hashes = new Uint32Array(COUNTS_MAX);
  const counts = new Uint32Array(COUNTS_MAX);
  /** When the window of each count ends; zero if the slot is free. */
  const resets = new Float64Array(COUNTS_MAX);
  /** The number of the latest use of each slot; zero if the slot is free. */
  const uses = new Float64Array(COUNTS_MAX);
  let uses_ever = 0;

  /**
   * Returns the slot of a key's count, or the slot that it takes over: one that is free or over, or the least recently
   * used.
   */
  function findSlot(key: string, moment: number): number {
    const hash = Bun.hash.xxHash32(key, key_seed);
    const first = (Bun.hash.xxHash32(key, group_seed) % GROUPS) * GROUP_SIZE;
    let oldest = first;
    let oldest_use = Number.POSITIVE_INFINITY;
    for (let slot = first; slot < first + GROUP_SIZE; slot += 1) {
      const reset_at = resets[slot] ?? 0;
      if (hashes[slot] === hash && reset_at !== 0) return slot;
      const use = reset_at > moment ? (uses[slot] ?? 0) : 0;
      if (use < oldest_use) {
        oldest = slot;
        oldest_use = use;
      }
    }
    hashes[oldest] = hash;
    resets[oldest] = 0;
    return oldest;
  }

  return {
    count({ name, requests, window_ms }, caller_key) {
      const moment = now();
      const reset_at = (Math.floor(moment / window_ms) + 1) * window_ms;
      const slot = findSlot(`${name} ${caller_key}`, moment);
      // Starts over in another window: the next one, or an earlier one if the clock was set back.
      const used = resets[slot] === reset_at ? (counts[slot] ?? 0) : 0;
      // Refused requests are not counted.
      const is_within = used < requests;
      const counted = is_within ? used + 1 : used;
      counts[slot] = counted;
      resets[slot] = reset_at;
      uses_ever += 1;
      uses[slot] = uses_ever;
      return { is_within, limit: requests, remaining: requests - counted, reset_at, reset_in_ms: reset_at - moment };
    },
    get size() {
      return resets.reduce((size, reset_at) => (reset_at === 0 ? size : size + 1), 0);
    },
  };
}
