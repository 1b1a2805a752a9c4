/**
 * Returns a function that requests a run of `work`. Only one run is under way at a time: requests during a run lead to
 * one more run after it. The call that starts the runs resolves when all of them are done. A call during a run resolves at
 * once: the first call does its run too. `work` must not reject: a failure ends the runs of its call, and those that were
 * requested meanwhile wait for the next call.
 */
export function coalesceRuns(work: () => Promise<void>): () => Promise<void> {
  let is_running = false;
  let is_wanted = false;
  return async () => {
    is_wanted = true;
    if (is_running) return;
    is_running = true;
    try {
      while (is_wanted) {
        is_wanted = false;
        await work();
      }
    } finally {
      is_running = false;
    }
  };
}

/**
 * Returns a function whose callers share one run and its result. A call never joins a run that has begun, so its result
 * includes all that happened before the call. Runs begin at least `apart_ms` apart.
 */
export function shareRuns<Result>(run: () => Promise<Result>, apart_ms = 0): () => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  let next: Promise<Result> | undefined;
  let next_at = 0;
  return () => {
    next ??= begin();
    return next;
  };

  function begin(): Promise<Result> {
    const result = last.then(async () => {
      const early_ms = next_at - performance.now();
      if (early_ms > 0) await Bun.sleep(early_ms);
      next_at = performance.now() + apart_ms;
      next = undefined;
      return await run();
    });
    last = result.catch(() => {});
    return result;
  }
}
