// What the service says (docs/watch.md), as far as the client reads it.

/** What every answer that can be watched has. The index is opaque: two that are equal stand for the same moment. */
export interface Watched {
  watch: { index: string };
}

/** Why something cannot be watched: the body that its GET is refused with. */
export interface Refusal {
  code: string;
  message: string;
  ray_id?: string;
  documentation?: string;
  metadata?: unknown;
}

/** What the service would say of a frame that is too long, if it did not close the socket. */
export const FRAME_TOO_LONG: Refusal = {
  code: 'WATCH_BAD_FRAME',
  message: 'The frame is invalid: with this path it is larger than 16 KiB.',
};

export const SUBPROTOCOL = 'muster.watch.v1';

/** A frame. Others may come with later versions, and mean nothing here. */
export type Frame =
  | { type: 'ready' | 'pong' | 'unsubscribed' }
  | { type: 'subscribed'; id: string; key: string }
  | { type: 'body'; key: string; body: Watched }
  | { type: 'error'; id?: string; error: Refusal; retry_after_ms?: number };

/** Close codes of docs/watch.md, and the one for a connection that was lost (RFC 6455, 7.4.1). */
export const CLOSE = { normal: 1000, lost: 1006, unauthorized: 4401 } as const;

export function isWatched(body: unknown): body is Watched {
  const watch = isObject(body) ? body.watch : undefined;
  return isObject(watch) && typeof watch.index === 'string';
}

/** What has no code does not come from the service, but from something in between. */
export function isRefusal(body: unknown): body is Refusal {
  return isObject(body) && typeof body.code === 'string';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
