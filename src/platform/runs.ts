/**
 * Returns a function that asks for a run of `work`, of which one is under way at a time: at once while idle, else one
 * more run after the current one, however often it was asked for. It resolves when its runs are done, or at once when
 * another call runs them. A failure ends the runs of its call.
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
 * includes what happened before the call.
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
