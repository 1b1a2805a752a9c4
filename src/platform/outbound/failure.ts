/**
 * Why an outbound request got no answer.
 *
 * - `bad_request`: the request is invalid (its address is not http or https or contains a password, or a header is invalid).
 * - `forbidden_address`: the target is, or resolves to, an address that is not on the Internet or is this machine's.
 * - `too_busy`: too many requests are under way or waiting, to the target, of the account or in all.
 * - `paused`: the target failed too often and gets no requests for a few seconds.
 * - `unreachable`: the name has no address, the target does not answer, its certificate is invalid, or the connection was lost.
 * - `broken_answer`: the answer is not HTTP, has too many headers, or is too long.
 * - `timeout`: the request took too long.
 * - `cancelled`: its caller has disconnected.
 */
export type FailureKind =
  | 'bad_request'
  | 'forbidden_address'
  | 'too_busy'
  | 'paused'
  | 'unreachable'
  | 'broken_answer'
  | 'timeout'
  | 'cancelled';

/** How far a request without an answer came. */
interface FailureDetails {
  cause?: unknown;
  was_sent?: boolean;
  waited_ms?: number;
}

/** An outbound request without an answer. The message does not contain the address, which may contain secrets. */
export class OutboundFailure extends Error {
  readonly kind: FailureKind;
  /** Whether there was a connection on which the target may have received the request. */
  readonly was_sent: boolean;
  /** How long the target had not answered when a caller disconnected. */
  readonly waited_ms: number;

  constructor(kind: FailureKind, message: string, { cause, was_sent = false, waited_ms = 0 }: FailureDetails = {}) {
    super(`${kind}: ${message}`, { cause });
    this.name = 'OutboundFailure';
    this.kind = kind;
    this.was_sent = was_sent;
    this.waited_ms = waited_ms;
  }
}
