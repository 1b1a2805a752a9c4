/** Longer than a service takes for any request: MUSTER_REQUEST_TIMEOUT_MS is 240 s at most. */
export const ANSWER_WITHIN_MS = 250_000;
