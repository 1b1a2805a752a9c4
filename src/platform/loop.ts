import { rootMessageOf } from './database/failures.ts';
import { type Events, redact } from './events.ts';

const PAUSE_FIRST_MS = 200;
const PAUSE_MAX_MS = 30_000;

/** A piece of background work. */
export interface Loop {
  /** Requests a step: now, or after the pause that follows a failed one. A wake during a step leads to one more step. */
  wake(): void;
  /** Resolves once the signal is aborted and the last step has ended. */
  stopped: Promise<void>;
}

/** What is known of a loop. */
export interface LoopState {
  name: string;
  /** Steps since the start. */
  steps: number;
  /** When the last step began; undefined before the first one. */
  begun_ts: Date | undefined;
  /** How long the last step took, in milliseconds; undefined while the first one runs. */
  took_ms: number | undefined;
  /** When the next step begins unless the loop is woken; undefined while a step runs. */
  next_ts: Date | undefined;
  /** How many steps have failed in a row. */
  failures: number;
  /** The last failure since the start, without secrets. */
  last_failure: { at: Date; message: string } | undefined;
}

/** The running loops of each service, by its events. A test process runs several services. */
const running = new WeakMap<Events, Set<LoopState>>();

/** Returns the loops that run and report to `events`, in the order of their starts. */
export function listLoops(events: Events): LoopState[] {
  return [...(running.get(events) ?? [])];
}

const DELETE_EVERY_MS = 60_000;
const MESSAGE_MAX = 500;

interface LoopOptions {
  name: string;
  /** Interval of steps without a wake. A function is called after each step, for an interval that changes. */
  every_ms: number | (() => number);
  /** The longest pause after failures, by default 30 s. */
  pause_max_ms?: number;
  signal: AbortSignal;
  events: Events;
  /** Finds everything that is not in its desired state and corrects it. Returns the number of corrections. */
  step: (signal: AbortSignal) => Promise<number>;
}

/**
 * Runs `step` repeatedly, one at a time: at once when woken, else at an interval. A step that throws is repeated after a
 * pause that doubles up to a maximum. Corrections without a wake are reported as `loop_corrected`, because a wake was missing.
 */
export function startLoop(options: LoopOptions): Loop {
  const { name, every_ms, pause_max_ms = PAUSE_MAX_MS, signal, events, step } = options;
  const state: LoopState = {
    name,
    steps: 0,
    begun_ts: undefined,
    took_ms: undefined,
    next_ts: undefined,
    failures: 0,
    last_failure: undefined,
  };
  const loops = running.get(events) ?? new Set<LoopState>();
  running.set(events, loops.add(state));
  let is_woken = true;
  let endPause = () => {};

  async function pause(milliseconds: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = () => resolve();
    state.next_ts = new Date(Date.now() + milliseconds);
    const timer = setTimeout(end, milliseconds);
    endPause = end;
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    await promise;
    state.next_ts = undefined;
    endPause = () => {};
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }

  async function takeStep(): Promise<number> {
    const begun = performance.now();
    state.begun_ts = new Date();
    state.steps += 1;
    try {
      return await step(signal);
    } finally {
      state.took_ms = performance.now() - begun;
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const was_woken = is_woken;
      is_woken = false;
      try {
        const corrected = await takeStep();
        state.failures = 0;
        if (corrected > 0 && !was_woken) events.emit({ event: 'loop_corrected', loop: name, count: corrected });
      } catch (cause) {
        if (signal.aborted) return;
        state.failures += 1;
        state.last_failure = { at: new Date(), message: describe(cause) };
        is_woken = true;
        events.emit({ event: 'loop_failed', loop: name, failures: state.failures, cause });
        await pause(Math.min(pause_max_ms, PAUSE_FIRST_MS * 2 ** (state.failures - 1)));
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
    stopped: run().finally(() => loops.delete(state)),
  };
}

/** Returns why a step failed, without secrets. */
function describe(cause: unknown): string {
  return redact(rootMessageOf(cause)).slice(0, MESSAGE_MAX);
}

interface DeletingOptions extends Pick<LoopOptions, 'name' | 'signal' | 'events'> {
  /** Deletes a batch of expired rows. Returns how many; more may remain. */
  deleteOld: () => Promise<number>;
}

/** Starts a loop that deletes expired rows every minute. */
export function startDeletingOld({ deleteOld, ...options }: DeletingOptions): Loop {
  return startLoop({
    ...options,
    every_ms: DELETE_EVERY_MS,
    async step(signal) {
      while ((await deleteOld()) > 0 && !signal.aborted);
      return 0;
    },
  });
}
