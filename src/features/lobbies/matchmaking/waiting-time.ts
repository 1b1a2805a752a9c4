import type { RequestDeadline } from '../../../platform/http/request-deadline.ts';

/** The share of a request's time that is kept for its answer, such as why a lobby is not ready, and its maximum. */
const ANSWERING_SHARE = 0.25;
const ANSWERING_MAX_MS = 1_000;

/** Returns how long a request may still wait for something and be answered in time. */
export function waitingTime({ ends_at }: Pick<RequestDeadline, 'ends_at'>, request_timeout_ms: number): number {
  const answering_ms = Math.min(ANSWERING_MAX_MS, request_timeout_ms * ANSWERING_SHARE);
  const left_ms = Math.min(ends_at - performance.now(), request_timeout_ms);
  return Math.max(0, left_ms - answering_ms);
}
