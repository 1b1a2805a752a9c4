/** Waits for a condition, not for a time. Fails with the last thing that was seen. */
export async function waitFor<Seen>(
  look: () => Promise<Seen | undefined | false> | Seen | undefined | false,
  what: string,
): Promise<Seen> {
  const deadline = performance.now() + 15_000;
  let seen: Seen | undefined | false;
  while (performance.now() < deadline) {
    seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    await Bun.sleep(10);
  }
  throw new Error(`waited in vain for ${what}`);
}
