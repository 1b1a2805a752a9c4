import { ServiceError } from '../../platform/errors.ts';
import { watchContent } from '../../platform/http/watched-content.ts';
import { AnswerDeadline } from './answer-deadline.ts';
import { type Client, toClientHeaders, toServerHeaders } from './forwarded-headers.ts';
import type { ClientTraffic } from './traffic.ts';

/** Methods of requests that may be sent twice. */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS']);
/** The longest answer whose end does not depend on its client, because the kernel keeps it. */
const KEPT_BYTES_MAX = 64 * 1024;

export interface RelayedRequest {
  request: Request;
  server_id: string;
  /** The address of the server, with the path and query of the request. */
  url: string;
  client: Client;
  is_by_path: boolean;
  traffic: ClientTraffic;
  /** How long the body may pause. */
  body_pause_max_ms?: number;
  /** Called when the server has been sent the whole body. */
  onBodySent(): void;
  /** Called when the answer has ended. */
  onEnd(): void;
}

/** Sends a request to a server, and returns its answer, whose body is passed on while it arrives. Throws GATEWAY_ errors. */
export async function relayRequest(relayed: RelayedRequest): Promise<Response> {
  const { request, server_id, url, client, is_by_path, traffic, body_pause_max_ms, onBodySent, onEnd } = relayed;
  const { method, signal } = request;
  const started = performance.now();
  const received = request.body;
  using deadline = new AnswerDeadline({
    client: signal,
    server_id,
    has_body: received !== null,
    ...(body_pause_max_ms !== undefined && { body_pause_max_ms }),
  });
  const body =
    received &&
    watchContent(received, {
      onBytes(bytes) {
        deadline.noteBody(bytes);
        assertFew(traffic.receive(bytes));
      },
      onEnd(is_whole) {
        if (!is_whole) return;
        deadline.noteBodySent();
        onBodySent();
      },
    });
  const send = () =>
    fetch(url, {
      method,
      headers: toServerHeaders(request.headers, client, { is_by_path }),
      body,
      redirect: 'manual',
      decompress: false,
      signal: deadline.signal,
    });
  try {
    // A server may close a connection that was kept open just when it is used again.
    const answer = await send().catch((cause: unknown) => (mayRepeat(request, cause) ? send() : Promise.reject(cause)));
    traffic.answer(performance.now() - started);
    const { status, statusText } = answer;
    const headers = toClientHeaders(answer.headers, { is_by_path });
    return new Response(bodyOf(answer, { method, traffic, onEnd }), { status, statusText, headers });
  } catch (cause) {
    if (deadline.failure) throw deadline.failure;
    if (signal.aborted) throw cause;
    throw new ServiceError('GATEWAY_SERVER_UNREACHABLE', { server_id });
  }
}

/** Returns the body of an answer, whose bytes are counted: at once if it is short, otherwise as they come. */
function bodyOf(
  { body, headers }: Response,
  { method, traffic, onEnd }: Pick<RelayedRequest, 'traffic' | 'onEnd'> & { method: string },
): Response['body'] {
  const announced = headers.get('content-length');
  const is_kept = announced !== null && Number(announced) <= KEPT_BYTES_MAX;
  if (body !== null && method !== 'HEAD' && !is_kept) {
    return watchContent(body, { onBytes: (bytes) => assertFew(traffic.send(bytes)), onEnd });
  }
  if (body !== null && method !== 'HEAD') traffic.send(Number(announced));
  onEnd();
  return body;
}

function assertFew(is_within: boolean): void {
  if (!is_within) throw new Error('too many bytes');
}

function mayRepeat({ method, body, signal }: Request, cause: unknown): boolean {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  const was_closed = code === 'ECONNRESET' || code === 'ConnectionClosed';
  return was_closed && REPEATABLE.has(method) && body === null && !signal.aborted;
}
