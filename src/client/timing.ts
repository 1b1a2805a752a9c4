/** Time limits, in milliseconds. */
export interface Timing {
  /** A socket from which nothing has come so long after it was created is given up: 10,000. */
  open_within_ms: number;
  /** The client pings the service after so long without a frame: 25,000. */
  ping_after_ms: number;
  /** A socket that does not answer a ping for so long is given up: 10,000. */
  pong_within_ms: number;
  /** A poll or a token that takes longer is requested again: 60,000. The service holds a poll for 40,000. */
  poll_within_ms: number;
  /** The longest pause after a first failure; it doubles with each further one: 1,000. */
  retry_ms: number;
  /** The longest of all pauses: 60,000. */
  retry_max_ms: number;
}

export const TIMING: Timing = {
  open_within_ms: 10_000,
  ping_after_ms: 25_000,
  pong_within_ms: 10_000,
  poll_within_ms: 60_000,
  retry_ms: 1_000,
  retry_max_ms: 60_000,
};

/** A pause before the next attempt. */
export interface Pause {
  timer: ReturnType<typeof setTimeout>;
  /** The service may not be asked before this time of `performance.now()`. */
  asked_until: number;
}

/** Chooses a random pause up to a maximum that doubles with each failure, because other clients retry at the same moment. */
export function choosePause(failures: number, { retry_ms, retry_max_ms }: Timing): number {
  return Math.random() * Math.min(retry_max_ms, retry_ms * 2 ** failures);
}

/** Tries again after the time that the service asked for and a random pause. */
export function startPause(
  { min_ms, failures }: { min_ms: number; failures: number },
  timing: Timing,
  tryAgain: () => void,
): Pause {
  const timer = setTimeout(tryAgain, min_ms + choosePause(failures, timing));
  return { timer, asked_until: performance.now() + min_ms };
}

/** Ends a pause, unless the service may not be asked yet: then returns it. */
export function endPause(pause: Pause | undefined): Pause | undefined {
  if (pause && performance.now() < pause.asked_until) return pause;
  clearTimeout(pause?.timer);
  return undefined;
}

/** Returns the promise's value. Throws if that takes longer than the limit, or the signal is aborted. */
export async function within<Value>(limit_ms: number, signal: AbortSignal, promise: Promise<Value>): Promise<Value> {
  let end = () => {};
  const ended = new Promise<never>((_, reject) => {
    end = () => reject(new Error('The promise took too long, or its result is no longer needed.'));
  });
  const late = setTimeout(end, limit_ms);
  signal.addEventListener('abort', end);
  try {
    return await Promise.race([promise, ended]);
  } finally {
    clearTimeout(late);
    signal.removeEventListener('abort', end);
  }
}
