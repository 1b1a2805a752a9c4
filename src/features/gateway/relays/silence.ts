const CHECKED_EVERY_MS = 5_000;

/** Checks for what has been silent for too long, at least as often as the shortest limit, until the timer is cleared. */
export function startCheckingSilence(limits_ms: readonly number[], check: (now: number) => void): Timer {
  return setInterval(() => check(performance.now()), Math.min(CHECKED_EVERY_MS, ...limits_ms));
}
