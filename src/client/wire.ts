// The part of the protocol (docs/watch.md) that the client reads.

/** Every watchable answer. The index is opaque; equal indexes mean the same content. */
export interface Watched {
  watch: { index: string };
}

/** Why a path cannot be watched: the error body that its GET returns. */
export interface Refusal {
  code: string;
  message: string;
  ray_id?: string;
  documentation?: string;
  metadata?: unknown;
}

/** The refusal of a path that makes a frame too long. It is not sent, because the service would close the socket. */
export const FRAME_TOO_LONG: Refusal = {
  code: 'WATCH_BAD_FRAME',
  message: 'The frame is invalid: with this path it is larger than 16 KiB.',
};

/** The characters that the header of a request may have. */
const SENDABLE = /^[\x20-\xff]*$/;

/** Returns the refusal of a token that no request can have; undefined for one that the service can be asked about. */
export function refuseUnsendable(token: string | undefined): Refusal | undefined {
  if (token === undefined || SENDABLE.test(token)) return undefined;
  return { code: 'TOKEN_INVALID', message: 'The token has characters that no token has. Copy it again.' };
}

/** Codes of refusals after which a new token of the caller may be accepted. */
const TOKEN_CODES = new Set(['CLAIMS_ENTITLEMENT_EXPIRED', 'TOKEN_REVOKED']);

export const SUBPROTOCOL = 'muster.watch.v1';

/** A frame. Other types, of later versions, are ignored. */
export type Frame =
  | { type: 'ready' | 'pong' | 'unsubscribed' }
  | { type: 'subscribed'; id: string; key: string }
  | { type: 'body'; key: string; body: Watched }
  | { type: 'error'; id?: string; error: Refusal; retry_after_ms?: number };

/** Returns a frame; undefined for other data. */
export function parseFrame(data: unknown): Frame | undefined {
  const frame = typeof data === 'string' ? parseJson(data) : undefined;
  return isObject(frame) ? (frame as Frame) : undefined;
}

/** Close codes of docs/watch.md, and the code for a lost connection (RFC 6455, 7.4.1). */
export const CLOSE = { normal: 1000, lost: 1006, unauthorized: 4401 } as const;

export function isWatched(body: unknown): body is Watched {
  const watch = isObject(body) ? body.watch : undefined;
  return isObject(watch) && typeof watch.index === 'string';
}

/** Returns whether a body is an error of the service. An error without a code comes from a proxy. */
export function isRefusal(body: unknown): body is Refusal {
  return isObject(body) && typeof body.code === 'string';
}

/** Returns whether a refusal is for a token that was valid once. */
export function isForToken({ code }: Refusal): boolean {
  return TOKEN_CODES.has(code);
}

/** Returns the value of a JSON text; undefined for other text, such as the page of a proxy. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
