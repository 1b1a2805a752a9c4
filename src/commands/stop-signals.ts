/** A service gets SIGHUP when its terminal is closed. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
export type StopSignal = (typeof STOP_SIGNALS)[number];

/**
 * Signals within this time count as one press of ctrl-C. The terminal sends the signal to every process of its foreground
 * group, and `npx` and `bun run` each pass it on, so one press arrives up to four times.
 */
const ONE_PRESS_MS = 1_000;

/** Waits for a signal that asks the service to stop, and returns it. A second press of ctrl-C calls `leave`. */
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
