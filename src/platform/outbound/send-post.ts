import { type IncomingMessage, request as requestHttp, validateHeaderName, validateHeaderValue } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { portOf, toBareHost } from './addresses.ts';
import { OutboundFailure } from './failure.ts';
import { isOwnHeader } from './target.ts';

const HEADERS_BYTES_MAX = 16_384;
/** Interim answers (status 100 to 199) before the final one. */
const INTERIM_ANSWERS_MAX = 8;
/** How many addresses of the target are tried, in order. */
const ADDRESSES_MAX = 4;

/** A POST, with the addresses that it may connect to. */
export interface Post {
  url: URL;
  /** The checked addresses of the target. */
  addresses: string[];
  headers: Record<string, string>;
  body: string;
  /** With 0 the answer's body is not read. */
  answer_bytes_max: number;
  /** In PEM. Default: those of the system. */
  certificate_authorities?: string | undefined;
  signal: AbortSignal;
  /** Called when there is a connection to the target, over which the request goes now. */
  onSend: () => void;
}

export interface OutboundAnswer {
  status: number;
  text: string;
}

/**
 * Sends a POST on a new connection and returns its answer. Follows no redirect, decompresses nothing, and uses no resolver
 * and no proxy. Throws OutboundFailure, or any error after the signal was aborted.
 */
export async function sendPost(post: Post): Promise<OutboundAnswer> {
  const { url, headers, body, addresses, signal } = post;
  checkHeaders(headers);
  const host = toBareHost(url.hostname);
  const { promise, resolve, reject } = Promise.withResolvers<OutboundAnswer>();
  let is_answered = false;
  let was_sent = false;
  // Once the headers of the answer have arrived, `readAnswer` reports failures.
  const fail = (kind: 'unreachable' | 'broken_answer', message: string, cause?: unknown) => {
    if (!is_answered) reject(new OutboundFailure(kind, message, { cause, was_sent }));
  };
  const is_tls = url.protocol === 'https:';
  const request = (is_tls ? requestHttps : requestHttp)({
    method: 'POST',
    // Connections are not reused, because a later request may have a name that resolves to a forbidden address.
    agent: false,
    host,
    port: portOf(url),
    path: `${url.pathname}${url.search}`,
    headers: {
      'user-agent': 'Muster',
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
      host: url.host,
      'accept-encoding': 'identity',
      'content-length': Buffer.byteLength(body),
    },
    lookup: pinTo(addresses),
    maxHeaderSize: HEADERS_BYTES_MAX,
    signal,
    ...(is_tls ? { rejectUnauthorized: true, servername: isIP(host) === 0 ? host : '' } : {}),
    ...(post.certificate_authorities === undefined ? {} : { ca: post.certificate_authorities }),
  });
  request.on('socket', (socket) => {
    socket.once(is_tls ? 'secureConnect' : 'connect', () => {
      was_sent = true;
      post.onSend();
    });
  });
  let interim_answers = 0;
  request.on('information', () => {
    interim_answers += 1;
    if (interim_answers > INTERIM_ANSWERS_MAX) fail('broken_answer', 'the target sends interim answers only');
  });
  request.on('upgrade', () => fail('broken_answer', 'the target changes the protocol'));
  request.on('error', (cause: NodeJS.ErrnoException) => {
    const is_broken = cause.code?.startsWith('HPE_');
    fail(is_broken ? 'broken_answer' : 'unreachable', cause.code ?? 'the connection failed', cause);
  });
  request.on('close', () => fail('unreachable', 'the connection was closed without an answer'));
  request.on('response', (response) => {
    is_answered = true;
    readAnswer(response, post.answer_bytes_max).then(resolve, reject);
  });
  request.end(body);
  try {
    return await promise;
  } finally {
    request.destroy();
  }
}

async function readAnswer(response: IncomingMessage, bytes_max: number): Promise<OutboundAnswer> {
  const status = response.statusCode ?? 0;
  if (bytes_max === 0) return { status, text: '' };
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const piece of response) {
      length += piece.length;
      if (length > bytes_max)
        throw new OutboundFailure('broken_answer', `the answer is longer than ${bytes_max} bytes`, { was_sent: true });
      pieces.push(piece);
    }
  } catch (cause) {
    throw cause instanceof OutboundFailure
      ? cause
      : new OutboundFailure('broken_answer', 'the answer ends too early', { cause, was_sent: true });
  }
  return { status, text: Buffer.concat(pieces).toString('utf8') };
}

/** Returns a lookup that resolves every name to these addresses. */
function pinTo(addresses: string[]): LookupFunction {
  const found = addresses.slice(0, ADDRESSES_MAX).map((address) => ({ address, family: isIP(address) }));
  const [first = { address: '', family: 0 }] = found;
  return (_name, { all }, answer) => (all ? answer(null, found) : answer(null, first.address, first.family));
}

function checkHeaders(headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) {
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch (cause) {
      throw new OutboundFailure('bad_request', 'a header is invalid', { cause });
    }
    if (isOwnHeader(name)) throw new OutboundFailure('bad_request', `the header ${name} must not be set`);
  }
}
