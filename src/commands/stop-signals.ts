/** The exit code that a shell reports for a program that ctrl-C ended. */
export const INTERRUPTED_EXIT_CODE = 130;
/** SIGHUP comes when the terminal is closed. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
export type StopSignal = (typeof STOP_SIGNALS)[number];

/**
 * Signals within this time count as one press of ctrl-C. The terminal sends the signal to every process of its foreground
 * group, and `npx` and `bun run` each pass it on, so one press arrives up to four times.
 */
const ONE_PRESS_MS = 1_000;

/** Resolves with the first signal that asks this program to stop. A second press of ctrl-C calls `leave`. */
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
