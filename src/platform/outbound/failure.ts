/**
 * Why a request of ours to somebody else came to nothing.
 *
 * - `bad_request`: it may not be sent as it is (the address is no http or https, or holds a password; a header is none).
 * - `forbidden_address`: the target is, or resolves to, an address that is not on the Internet, or is this machine.
 * - `too_busy`: too many requests to this target, of this account, or in all, are under way or wait.
 * - `resting`: the target failed too often; it is left alone for a few seconds.
 * - `unreachable`: the name has no address, nobody answers there, the certificate is not the name's, or the connection was lost.
 * - `broken_answer`: what came back is no HTTP, has too many headers, or is longer than was wanted.
 * - `timeout`: the time was up.
 * - `cancelled`: whoever wanted it has gone.
 */
export type FailureKind =
  | 'bad_request'
  | 'forbidden_address'
  | 'too_busy'
  | 'resting'
  | 'unreachable'
  | 'broken_answer'
  | 'timeout'
  | 'cancelled';

/** A request to somebody else that has no answer. Its message holds nothing of the address, which may hold secrets. */
export class OutboundFailure extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, cause?: unknown) {
    super(`${kind}: ${message}`, { cause });
    this.name = 'OutboundFailure';
    this.kind = kind;
  }
}
