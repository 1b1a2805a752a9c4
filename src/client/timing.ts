/** Time limits, in milliseconds. */
export interface Timing {
  /** Time after which a new socket is given up if it has received nothing: 10,000. */
  open_within_ms: number;
  /** Time without a frame after which the client sends a ping: 25,000. */
  ping_after_ms: number;
  /** Time after which a socket is given up if a ping was not answered: 10,000. */
  pong_within_ms: number;
  /** Time after which a poll or a token is requested again: 60,000. The service holds a poll for 40,000. */
  poll_within_ms: number;
  /** The longest pause after a first failure; it doubles with each further one: 1,000. */
  retry_ms: number;
  /** The limit of that doubling: 60,000. A pause that the service asks for comes on top. */
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
  /** The service asked for no request before this time (`performance.now()`). */
  not_before: number;
}

/** Chooses a random pause up to a maximum that doubles with each failure, because other clients retry at the same moment. */
export function choosePause(failures: number, { retry_ms, retry_max_ms }: Timing): number {
  return Math.random() * Math.min(retry_max_ms, retry_ms * 2 ** failures);
}

/** Calls `tryAgain` after the time that the service asked for (`min_ms`), and a random pause on top. */
export function startPause(
  { min_ms, failures }: { min_ms: number; failures: number },
  timing: Timing,
  tryAgain: () => void,
): Pause {
  const timer = setTimeout(tryAgain, min_ms + choosePause(failures, timing));
  return { timer, not_before: performance.now() + min_ms };
}

/** Ends a pause. Returns it instead if the service asked for more time. */
export function endPause(pause: Pause | undefined): Pause | undefined {
  if (pause && performance.now() < pause.not_before) return pause;
  clearTimeout(pause?.timer);
  return undefined;
}

/** What is waited for, and how long at most. */
interface Waiting {
  what: string;
  limit_ms: number;
  /** Ends the wait. */
  signal: AbortSignal;
}

/** Waits for a promise. Throws if that takes longer than the limit, or the signal is aborted. */
export async function within<Value>(promise: Promise<Value>, { what, limit_ms, signal }: Waiting): Promise<Value> {
  let end = () => {};
  const ended = new Promise<never>((_, reject) => {
    end = () => reject(new Error(`${what} did not come within ${limit_ms} ms.`));
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
