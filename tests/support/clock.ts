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
