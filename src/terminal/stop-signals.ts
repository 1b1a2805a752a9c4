import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { EXIT, Failure } from './failure.ts';

/** SIGHUP comes when the terminal is closed. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
export type StopSignal = (typeof STOP_SIGNALS)[number];

/**
 * Signals within this time count as one press of ctrl-C. The terminal sends the signal to every process of its foreground
 * group, and `npx` and `bun run` each pass it on, so one press arrives up to four times.
 */
const ONE_PRESS_MS = 1_000;

/**
 * Resolves with the first signal that asks this program to stop. Calls `leave` on a ctrl-C that comes more than a second
 * after that signal; an earlier one counts as the same press.
 */
export function listenForStop(leave: () => void): Promise<StopSignal> {
  const { promise, resolve } = Promise.withResolvers<StopSignal>();
  let first_at: number | undefined;
  for (const signal of STOP_SIGNALS) {
    if (signal === 'SIGHUP' && ignoresHangup()) continue;
    process.on(signal, () => {
      const now = performance.now();
      first_at ??= now;
      resolve(signal);
      if (signal === 'SIGINT' && now - first_at > ONE_PRESS_MS) leave();
    });
  }
  return promise;
}

/** Returns whether this program was started to outlive its terminal, as `nohup` does. Only Linux tells. */
function ignoresHangup(): boolean {
  try {
    const [, ignored = ''] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    return (BigInt(`0x${ignored}`) & BigInt(1 << (constants.signals.SIGHUP - 1))) !== 0n;
  } catch {
    return false;
  }
}

/** Returns a signal that ctrl-C and the like abort. Another ctrl-C, a second later, ends this process at once. */
export function createStopSignal(): AbortSignal {
  const stopping = new AbortController();
  void listenForStop(() => process.exit(EXIT.interrupted)).then((reason) => stopping.abort(reason));
  return stopping.signal;
}

interface Stoppable<Result> {
  /** Cleans up and throws once its signal is aborted. */
  work: (signal: AbortSignal) => Promise<Result>;
  /** Returns a sentence about what was done when the work stopped. */
  describeStop: () => string;
}

/** Does work until a signal such as ctrl-C, then throws Failure. */
export async function doStoppable<Result>({ work, describeStop }: Stoppable<Result>): Promise<Result> {
  const stopping = createStopSignal();
  try {
    return await work(stopping);
  } catch (error) {
    throw stopping.aborted ? new Failure(describeStop(), EXIT.interrupted) : error;
  }
}

/** Calls `end` on ctrl-C and SIGTERM, unless the command listens for them itself in order to clean up. */
export function endBy(end: (signal: StopSignal) => void): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      if (process.listenerCount(signal) === 0) end(signal);
    });
  }
}
