/** Shorter than the limit of a test, so that the error names what was awaited. */
const WAIT_MS = 75_000;

/**
 * For what a test's name says happens at once: less than whatever else would bring it about (a loop's minute, a request's
 * time), and more than a busy machine takes.
 */
export const AT_ONCE_MS = 20_000;

/** Looks take processor time from what is waited for, so the pauses between them grow with the wait. */
const PAUSE_MS = { min: 10, max: 50 };
const PAUSE_PART_OF_WAIT = 0.05;

/** Waits for a condition, not for a time. Fails with what was waited for. */
export async function waitFor<Seen>(
  look: () => Promise<Seen | undefined | false> | Seen | undefined | false,
  what: string,
  wait_ms = WAIT_MS,
): Promise<Seen> {
  const started = performance.now();
  for (let waited = 0; waited < wait_ms; waited = performance.now() - started) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    await Bun.sleep(Math.min(PAUSE_MS.max, Math.max(PAUSE_MS.min, PAUSE_PART_OF_WAIT * waited)));
  }
  throw new Error(`waited in vain for ${what}`);
}
