import type { Clock } from '../../src/platform/clock.ts';

/** Creates a clock that runs like that of the machine, and that a test can advance. */
export function createTestClock(): Clock & { advance(milliseconds: number): void } {
  let ahead_ms = 0;
  return {
    now: () => new Date(Date.now() + ahead_ms),
    advance(milliseconds) {
      ahead_ms += milliseconds;
    },
  };
}

/** Creates a clock that stands still until a test advances it, for rules that depend on a millisecond. */
export function createFixedClock(
  start = new Date('2030-01-01T00:00:00Z'),
): Clock & { advance(milliseconds: number): void } {
  let at_ms = start.getTime();
  return {
    now: () => new Date(at_ms),
    advance(milliseconds) {
      at_ms += milliseconds;
    },
  };
}
