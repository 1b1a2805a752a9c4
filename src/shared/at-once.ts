/** Runs `work` on each item, at most `at_once_max` at a time. Waits for all of them, then throws the first failure. */
export async function forEachAtOnce<Item>(
  items: readonly Item[],
  at_once_max: number,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const failures: unknown[] = [];
  await forEachUntilFailure(items, at_once_max, async (item) => {
    try {
      await work(item);
    } catch (failure) {
      failures.push(failure);
    }
  });
  if (failures.length > 0) throw failures[0];
}

/**
 * Runs `work` on each item, at most `at_once_max` at a time. Throws the first failure at once, and begins no other item after
 * it.
 */
export async function forEachUntilFailure<Item>(
  items: readonly Item[],
  at_once_max: number,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const left = items.values();
  let has_failed = false;
  async function runWorker(): Promise<void> {
    for (const item of left) {
      if (has_failed) return;
      try {
        await work(item);
      } catch (failure) {
        has_failed = true;
        throw failure;
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(at_once_max, items.length) }, runWorker));
}
