/** How long things may take, in milliseconds. */
export interface Timing {
  /** A socket from which nothing has come for as long after it was asked for is given up: 10,000. */
  open_within_ms: number;
  /** When nothing has come for as long, the service is asked whether it is there: 25,000. */
  ping_after_ms: number;
  /** When it does not answer that for as long, the socket is given up: 10,000. */
  pong_within_ms: number;
  /** A poll that takes longer is asked again, and so is a token: 60,000. The service holds a poll for 40,000. */
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

/** Until something is tried again. */
export interface Pause {
  timer: ReturnType<typeof setTimeout>;
  /** When the service may be asked again, by `performance.now()`: nothing ends it before. */
  asked_until: number;
}

/** A pause by chance, from a span that doubles with each failure: everybody else tries again at the same moment. */
export function choosePause(failures: number, { retry_ms, retry_max_ms }: Timing): number {
  return Math.random() * Math.min(retry_max_ms, retry_ms * 2 ** failures);
}

/** Tries again after as long as the service asked for, and a pause by chance. */
export function startPause(
  { min_ms, failures }: { min_ms: number; failures: number },
  timing: Timing,
  tryAgain: () => void,
): Pause {
  const timer = setTimeout(tryAgain, min_ms + choosePause(failures, timing));
  return { timer, asked_until: performance.now() + min_ms };
}

/** Ends a pause. Gives it back while the service does not want to be asked: then it stays. */
export function endPause(pause: Pause | undefined): Pause | undefined {
  if (pause && performance.now() < pause.asked_until) return pause;
  clearTimeout(pause?.timer);
  return undefined;
}

/** What a promise gives. Throws when that takes longer than the limit, or when the signal is aborted. */
export async function within<Value>(limit_ms: number, signal: AbortSignal, promise: Promise<Value>): Promise<Value> {
  let end = () => {};
  const ended = new Promise<never>((_, reject) => {
    end = () => reject(new Error('It took too long, or is not wanted any more.'));
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
