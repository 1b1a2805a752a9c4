/** SIGHUP comes when the terminal of the service is closed. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
export type StopSignal = (typeof STOP_SIGNALS)[number];

/**
 * Signals closer together than this are one request. The terminal sends ctrl-C to every process of its foreground group, and
 * `npx` and `bun run` each pass theirs on, so one press arrives up to four times.
 */
const ONE_PRESS_MS = 1_000;

/** Listens for the signals that ask the service to stop. Returns the first; a later ctrl-C that is a press of its own calls `leave`. */
export function listenForStop(leave: () => void): Promise<StopSignal> {
  const { promise, resolve } = Promise.withResolvers<StopSignal>();
  let first_at: number | undefined;
  for (const signal of STOP_SIGNALS) {
    process.on(signal, () => {
      const now = performance.now();
      first_at ??= now;
      resolve(signal);
      if (signal === 'SIGINT' && now - first_at > ONE_PRESS_MS) leave();
    });
  }
  return promise;
}
