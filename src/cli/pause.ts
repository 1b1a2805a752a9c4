/** Waits for a time, or until the signal is aborted. */
export function pause(duration_ms: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal?.aborted) resolve();
  const timer = setTimeout(resolve, duration_ms);
  const end = () => {
    clearTimeout(timer);
    resolve();
  };
  signal?.addEventListener('abort', end, { once: true });
  return promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', end);
  });
}
