import type { Position } from './positions.ts';
import { isForToken, isRefusal, isWatched, parseJson, type Refusal, refuseUnsendable, type Watched } from './wire.ts';

/** An unchanged answer that comes sooner means that the service is stopping. */
const HELD_MIN_MS = 500;

export type Answer =
  | { kind: 'body'; body: Watched }
  | { kind: 'refusal'; error: Refusal; is_for_token: boolean }
  /** The poll should be repeated, after a while. `error` is the service's reason, if it gave one. */
  | { kind: 'temporary_failure'; retry_after_ms: number; error?: Refusal };

/** Polls once for changes after an index. Throws if the service cannot be reached or the signal is aborted. */
export async function poll(
  url: string,
  { path, index }: Position,
  token: string | undefined,
  signal: AbortSignal,
): Promise<Answer> {
  // `fetch` would fail as it does without a connection.
  const unsendable = refuseUnsendable(token);
  if (unsendable) return { kind: 'refusal', error: unsendable, is_for_token: true };
  const began = performance.now();
  const parameter =
    index === undefined ? '' : `${path.includes('?') ? '&' : '?'}watch_index=${encodeURIComponent(index)}`;
  const headers: HeadersInit = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`${url}${path}${parameter}`, { headers, signal, cache: 'no-store' });
  const { status } = response;
  const body = parseJson(await response.text());
  if (status === 200 && isWatched(body)) {
    const is_stopping = body.watch.index === index && performance.now() - began <= HELD_MIN_MS;
    return is_stopping ? { kind: 'temporary_failure', retry_after_ms: 0 } : { kind: 'body', body };
  }
  if (status === 200 && body !== undefined) {
    const error = { code: 'WATCH_NOT_WATCHABLE', message: 'This path cannot be watched.' };
    return { kind: 'refusal', error, is_for_token: false };
  }
  if (status >= 400 && status < 500 && status !== 429 && isRefusal(body)) {
    return { kind: 'refusal', error: body, is_for_token: status === 401 || isForToken(body) };
  }
  const retry_after_ms = Number(response.headers.get('retry-after')) * 1_000 || 0;
  return { kind: 'temporary_failure', retry_after_ms, ...(isRefusal(body) && { error: body }) };
}
