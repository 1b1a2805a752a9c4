import type { Clock } from '../../src/platform/clock.ts';

/** A clock that runs as the real one does, and that a test moves on. */
export function createMovedClock(): Clock & { advance(milliseconds: number): void } {
  let ahead_ms = 0;
  return {
    now: () => new Date(Date.now() + ahead_ms),
    advance(milliseconds) {
      ahead_ms += milliseconds;
    },
  };
}

/** A clock that stands still, but for what a test moves it by: what depends on a millisecond can be seen. */
export function createStillClock(
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
