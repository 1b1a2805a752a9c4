import { describe, expect, test } from 'bun:test';
import { COUNTS_MAX, createCounters } from '../../src/platform/limits/counters.ts';
import { averagePerMinute, inEachMinute } from '../../src/platform/limits/limit.ts';

const MIB = 2 ** 20;
const LIMIT = inEachMinute('test', 3);

describe('in-process counts', () => {
  test('are bounded in number and in memory for a million callers', () => {
    const counters = createCounters(() => 0);
    Bun.gc(true);
    const before = process.memoryUsage().heapUsed;
    for (let number = 0; number < 1_000_000; number += 1) {
      const { is_within } = counters.count(LIMIT, `public:namespace 2001:db8:${number.toString(16)}::/64`);
      if (!is_within) throw new Error('each caller has a count of its own');
    }
    Bun.gc(true);
    // Callers are spread by chance, so now and then a group of places is not full.
    expect(counters.size).toBeWithin(0.99 * COUNTS_MAX, COUNTS_MAX + 1);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * MIB);
  });

  test('are kept for an active caller while others come and go', () => {
    const counters = createCounters(() => 0);
    for (let number = 0; number < 3; number += 1) counters.count(LIMIT, 'me');
    for (let number = 0; number < 3 * COUNTS_MAX; number += 1) {
      counters.count(LIMIT, `${number}`);
      if (number % 1_000 === 0) expect(counters.count(LIMIT, 'me').is_within).toBe(false);
    }
  });

  test('of a strict limit are kept beside clients of looser ones that send more', () => {
    const counters = createCounters(() => 0);
    const loose = inEachMinute('loose', 1_000);
    for (let number = 0; number < 3; number += 1) counters.count(LIMIT, 'me');
    for (let caller = 0; caller < COUNTS_MAX / 8; caller += 1) {
      for (let number = 0; number < 10; number += 1) counters.count(loose, `${caller}`);
    }
    expect(counters.count(LIMIT, 'me').is_within).toBe(false);
    // Others take every place, but this count is used now and then.
    for (let caller = 0; caller < 2 * COUNTS_MAX; caller += 1) {
      for (let number = 0; number < 4; number += 1) counters.count(loose, `later ${caller}`);
      if (caller % 1_000 === 0) expect(counters.count(LIMIT, 'me').is_within).toBe(false);
    }
  });

  test('start at zero in each window, to the millisecond, also after several windows without a request', () => {
    let now = 0;
    const counters = createCounters(() => now);
    const outcomes = () => Array.from({ length: 4 }, () => counters.count(LIMIT, 'me').is_within);
    for (const begin of [0, 60_000, 120_000, 600_000]) {
      now = begin;
      expect(outcomes()).toEqual([true, true, true, false]);
      now = begin + 59_999;
      expect(counters.count(LIMIT, 'me')).toEqual({
        is_within: false,
        limit: 3,
        remaining: 0,
        reset_at: begin + 60_000,
        reset_in_ms: 1,
      });
    }
  });

  test('belong to the earlier window when the clock is set back', () => {
    let now = 60_000;
    const counters = createCounters(() => now);
    counters.count(LIMIT, 'me');
    now = 30_000;
    expect(counters.count(LIMIT, 'me')).toMatchObject({ is_within: true, reset_at: 60_000, remaining: 2 });
  });
});

describe('a limit', () => {
  test('of requests per minute covers a burst of fifteen minutes, as in the reference API', () => {
    expect(averagePerMinute('x', 128)).toMatchObject({ requests: 1_920, window_ms: 900_000 });
    expect(averagePerMinute('x', 3)).toMatchObject({ requests: 45 });
  });
});
