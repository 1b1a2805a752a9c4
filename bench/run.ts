import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs a bench, prints how long it took and ends the process. The bench puts everything that it opens on the stack,
 * which is always disposed of: at the end, after a failure, and after a signal.
 */
export async function runBench(measure: (opened: AsyncDisposableStack) => Promise<void>): Promise<never> {
  const started = performance.now();
  const opened = new AsyncDisposableStack();
  const interrupted = Promise.withResolvers<number>();
  // Once: a second signal ends the process at once.
  for (const signal of SIGNALS) process.once(signal, () => interrupted.resolve(128 + constants.signals[signal]));
  const measured = measure(opened).then(
    () => 0,
    (error) => {
      console.error(error);
      return 1;
    },
  );
  const exit_code = await Promise.race([measured, interrupted.promise]);
  await opened.disposeAsync();
  console.log(`\n${((performance.now() - started) / 1_000).toFixed(0)} s`);
  process.exit(exit_code);
}
