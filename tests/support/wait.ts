import { IS_FULL_LENGTH } from './full-length.ts';

/**
 * Shorter than the limit of a test, so that the error names what was awaited. At full length browsers, containers and a
 * Kubernetes run beside it, and a slow machine takes several times as long.
 */
export const WAIT_MS = IS_FULL_LENGTH ? 240_000 : 75_000;

/**
 * The limit for an effect that must come immediately: shorter than any other cause of it (a loop's minute, the time of a
 * request), and longer than a busy machine takes.
 */
export const IMMEDIATE_MS = 20_000;

/**
 * Checks take processor time from the awaited work, so the pauses between them grow with the wait, and none is shorter than
 * the check before it took: a check may start a program.
 */
const PAUSE_MS = { min: 10, max: 200, max_of_slow_checks: 1_000 };
const PAUSE_PART_OF_WAIT = 0.05;

/** Waits for a condition. Fails with its name, which may depend on what has happened until then. */
export async function waitFor<Value>(
  check: () => Promise<Value | undefined | false> | Value | undefined | false,
  what: string | (() => string),
  wait_ms = WAIT_MS,
): Promise<Value> {
  const started = performance.now();
  for (let waited = 0; waited < wait_ms; waited = performance.now() - started) {
    const value = await check();
    if (value !== undefined && value !== false) return value;
    const check_ms = performance.now() - started - waited;
    const growing_ms = Math.min(PAUSE_MS.max, Math.max(PAUSE_MS.min, PAUSE_PART_OF_WAIT * waited));
    await Bun.sleep(Math.max(growing_ms, Math.min(PAUSE_MS.max_of_slow_checks, check_ms)));
  }
  throw new Error(`waited in vain for ${typeof what === 'string' ? what : what()}`);
}

/** Runs everything that waits for no timer and for nothing outside of this process. */
export async function runPending(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
