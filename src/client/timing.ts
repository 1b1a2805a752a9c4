/** How long things may take, in milliseconds. */
export interface Timing {
  /** A socket from which nothing has come for as long after it was asked for is given up: 10,000. */
  open_within_ms: number;
  /** When nothing has come for as long, the service is asked whether it is there: 25,000. */
  ping_after_ms: number;
  /** When it does not answer that for as long, the socket is given up: 10,000. */
  pong_within_ms: number;
  /** A poll that takes longer is asked again: 60,000. The service holds one for 40,000. */
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

/** A pause by chance, from a span that doubles with each failure: everybody else tries again at the same moment. */
export function choosePause(failures: number, { retry_ms, retry_max_ms }: Timing): number {
  return Math.random() * Math.min(retry_max_ms, retry_ms * 2 ** failures);
}
