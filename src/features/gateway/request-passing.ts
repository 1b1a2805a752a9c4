import { ServiceError } from '../../platform/errors.ts';
import { observeBody } from '../../platform/http/observed-body.ts';
import { AnswerDeadline } from './answer-deadline.ts';
import { limitAnswerHeaders, toServerHeaders } from './forwarded-headers.ts';
import type { PassedRequest } from './named-requests.ts';
import { tooManyBytes } from './traffic.ts';

/** Methods of requests that may be sent twice. */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS']);
/** Answers that announce at most this length are read whole before they are sent on: a slow client holds no fetch. */
const WHOLE_BYTES_MAX = 64 * 1024;
const STATUS_MAX = 599;

interface PassingOptions {
  /** How long the body may pause. */
  body_pause_max_ms?: number;
  /** Called when the server has been sent the whole body. */
  onBodySent(): void;
}

/**
 * Sends a request to a server, and returns its answer. The body of a long answer is passed on while it arrives. Throws
 * GATEWAY_TOO_MANY_BYTES, GATEWAY_BODY_SLOW, GATEWAY_SERVER_SILENT and GATEWAY_SERVER_UNREACHABLE.
 */
export async function passRequest(passed: PassedRequest, request: Request, options: PassingOptions): Promise<Response> {
  const { server_id, server_address, target, client, is_by_path, traffic } = passed;
  const { body_pause_max_ms, onBodySent } = options;
  const { method, signal } = request;
  const started = performance.now();
  const received = request.body;
  /** Why the body was cut off, if it exceeded the limit of bytes. */
  let excess: ServiceError | undefined;
  using deadline = new AnswerDeadline({ client: signal, server_id, has_body: received !== null, body_pause_max_ms });
  const body =
    received &&
    observeBody(received, {
      onBytes(bytes) {
        deadline.noteBody(bytes);
        if (traffic.countReceived(bytes)) return;
        excess = tooManyBytes();
        throw excess;
      },
      onEnd(is_whole) {
        if (!is_whole) return;
        deadline.noteBodySent();
        onBodySent();
      },
    });
  const send = () =>
    fetch(`http://${server_address}${target}`, {
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
    traffic.countAnswer(performance.now() - started);
    refuseInvalidStatus(answer);
    limitAnswerHeaders(answer.headers, { is_by_path });
    return isShort(answer.headers) ? await readWhole(answer, passed) : passOn(answer, passed);
  } catch (cause) {
    const failure = excess ?? deadline.failure;
    if (failure) throw failure;
    if (signal.aborted) throw cause;
    throw new ServiceError('GATEWAY_SERVER_UNREACHABLE', { server_id });
  }
}

/** Throws if an answer has a status that HTTP does not have (RFC 9110, 15). Bun receives some, and cannot send all of them. */
function refuseInvalidStatus({ status, body }: Response): void {
  if (status >= 200 && status <= STATUS_MAX) return;
  void body?.cancel().catch(() => {});
  throw new Error(`HTTP has no status ${status}`);
}

/** Returns whether an answer is read whole. One without a type is not, because Bun would add one. */
function isShort(headers: Headers): boolean {
  const announced = headers.get('content-length');
  return announced !== null && Number(announced) <= WHOLE_BYTES_MAX && headers.has('content-type');
}

async function readWhole(answer: Response, { traffic, onEnd }: PassedRequest): Promise<Response> {
  const content = await answer.bytes();
  traffic.countSent(content.length);
  onEnd();
  return new Response(content, answer);
}

/** Returns an answer that passes its body on while that arrives, and counts its bytes. It may have none. */
function passOn(answer: Response, { traffic, onEnd }: PassedRequest): Response {
  const { body } = answer;
  if (body === null) {
    onEnd();
    return new Response(null, answer);
  }
  const onBytes = (bytes: number) => {
    // The answer has begun, so its client can only be cut off.
    if (!traffic.countSent(bytes)) throw tooManyBytes();
  };
  return new Response(observeBody(body, { onBytes, onEnd }), answer);
}

function mayRepeat({ method, body, signal }: Request, cause: unknown): boolean {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  const was_closed = code === 'ECONNRESET' || code === 'ConnectionClosed';
  return was_closed && REPEATABLE.has(method) && body === null && !signal.aborted;
}
