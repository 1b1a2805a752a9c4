/** Long enough to get on, short enough that a request which comes meanwhile does not notice. */
const SLICE_MS = 5;

/**
 * Returns a function for long work to await between two pieces: after every 5 ms of work it lets the event loop serve
 * others.
 */
export function createPacer(slice_ms = SLICE_MS): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < slice_ms) return;
    await new Promise((resolve) => setImmediate(resolve));
    since = performance.now();
  };
}

/** Does work on each item, on so many at a time. Waits for all of them, then throws the first failure. */
export async function forEachAtOnce<Item>(
  items: readonly Item[],
  at_once_max: number,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const left = items.values();
  const failures: unknown[] = [];
  async function runLane(): Promise<void> {
    for (const item of left) {
      try {
        await work(item);
      } catch (failure) {
        failures.push(failure);
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(at_once_max, items.length) }, runLane));
  if (failures.length > 0) throw failures[0];
}

/**
 * Lets all who ask share one run. A run that has begun is not joined: what happened before a call is in what it gets.
 */
export function shareRuns<Result>(run: () => Promise<Result>): () => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  let next: Promise<Result> | undefined;
  return () => {
    next ??= begin();
    return next;
  };

  function begin(): Promise<Result> {
    const result = last.then(async () => {
      next = undefined;
      return await run();
    });
    last = result.catch(() => {});
    return result;
  }
}
