/** Shorter than the limit of a test, so that the error names what was awaited. */
const WAIT_MS = 75_000;

/**
 * The limit for an effect that must come at once: shorter than any other cause of it (a loop's minute, the time of a
 * request), and longer than a busy machine takes.
 */
export const AT_ONCE_MS = 20_000;

/** Checks take processor time from the awaited work, so the pauses between them grow with the wait. */
const PAUSE_MS = { min: 10, max: 50 };
const PAUSE_PART_OF_WAIT = 0.05;

/** Waits for a condition. Fails with its name. */
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
