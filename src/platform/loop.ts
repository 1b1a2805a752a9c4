import type { Events } from './events.ts';

const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 30_000;

/** A piece of background work. */
export interface Loop {
  /** Requests a step now. A wake during a step leads to one more step. */
  wake(): void;
  /** Resolves once the signal is aborted and the last step has ended. */
  stopped: Promise<void>;
}

const FORGET_EVERY_MS = 60_000;

interface LoopOptions {
  name: string;
  /** Interval of steps without a wake. A function is called after each step, for an interval that changes. */
  every_ms: number | (() => number);
  signal: AbortSignal;
  events: Events;
  /** Finds everything that is not in its desired state and corrects it. Returns the number of corrections. */
  step: (signal: AbortSignal) => Promise<number>;
}

/**
 * Runs `step` repeatedly, one at a time: at once when woken, else at an interval. A step that throws is repeated after a
 * pause that doubles up to 30 s. Corrections without a wake are reported as `loop_corrected`, because a wake was missing.
 */
export function startLoop({ name, every_ms, signal, events, step }: LoopOptions): Loop {
  let is_woken = true;
  let failures = 0;
  let endPause = () => {};

  async function pause(milliseconds: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = () => resolve();
    const timer = setTimeout(end, milliseconds);
    endPause = end;
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    await promise;
    endPause = () => {};
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const was_woken = is_woken;
      is_woken = false;
      try {
        const corrected = await step(signal);
        failures = 0;
        if (corrected > 0 && !was_woken) events.emit({ event: 'loop_corrected', loop: name, count: corrected });
      } catch (cause) {
        if (signal.aborted) return;
        failures += 1;
        is_woken = true;
        events.emit({ event: 'loop_failed', loop: name, failures, cause });
        await pause(Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** failures));
      }
      if (!is_woken) await pause(typeof every_ms === 'number' ? every_ms : every_ms());
    }
  }

  return {
    wake() {
      // After a failed step is_woken is set, so that a wake does not shorten its pause.
      if (is_woken) return;
      is_woken = true;
      endPause();
    },
    stopped: run(),
  };
}

interface ForgettingOptions extends Pick<LoopOptions, 'name' | 'signal' | 'events'> {
  /** Deletes a batch of expired rows. Returns how many; more may remain. */
  forget: () => Promise<number>;
}

/** Starts a loop that deletes expired rows every minute. */
export function startForgetting({ forget, ...options }: ForgettingOptions): Loop {
  return startLoop({
    ...options,
    every_ms: FORGET_EVERY_MS,
    async step(signal) {
      while ((await forget()) > 0 && !signal.aborted);
      return 0;
    },
  });
}
