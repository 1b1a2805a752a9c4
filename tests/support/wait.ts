/** Less than a test may take, so that what was waited for is told. */
const WAIT_MS = 75_000;

/**
 * For what a test's name says happens at once: less than whatever else would bring it about (a loop's minute, a request's
 * time), and more than a busy machine takes.
 */
export const AT_ONCE_MS = 20_000;

/** Waits for a condition, not for a time. Fails with what was waited for. */
export async function waitFor<Seen>(
  look: () => Promise<Seen | undefined | false> | Seen | undefined | false,
  what: string,
  wait_ms = WAIT_MS,
): Promise<Seen> {
  const deadline = performance.now() + wait_ms;
  let seen: Seen | undefined | false;
  while (performance.now() < deadline) {
    seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    await Bun.sleep(10);
  }
  throw new Error(`waited in vain for ${what}`);
}
