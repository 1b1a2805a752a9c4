import type { Events } from './events.ts';

const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 30_000;

/** A piece of background work. */
export interface Loop {
  /** Asks for a step now. A wake during a step leads to one more step. */
  wake(): void;
  /** Resolves when the last step has ended after the signal was given. */
  stopped: Promise<void>;
}

const FORGET_EVERY_MS = 60_000;

interface LoopOptions {
  name: string;
  /** The time between steps that nobody asked for; a function is asked after each step, for a loop that has less to do at times. */
  every_ms: number | (() => number);
  signal: AbortSignal;
  events: Events;
  /** Asks what is not as wanted and mends it. Returns how much it mended. */
  step: (signal: AbortSignal) => Promise<number>;
}

/**
 * Runs `step` again and again: one at a time, at once when woken, else every so often. A step that throws is tried again
 * after a pause that doubles up to 30 s. What a step mends without having been woken is reported as `loop_corrected`:
 * somebody forgot to wake it.
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
        const mended = await step(signal);
        failures = 0;
        if (mended > 0 && !was_woken) events.emit({ event: 'loop_corrected', loop: name, count: mended });
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
      // While a failed step backs off, a wake must not bring it back at once: is_woken is set already.
      if (is_woken) return;
      is_woken = true;
      endPause();
    },
    stopped: run(),
  };
}

interface ForgettingOptions extends Pick<LoopOptions, 'name' | 'signal' | 'events'> {
  /** Deletes some of what is over. Gives how many; there may be more. */
  forget: () => Promise<number>;
}

/** Deletes what is over, every minute. */
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
