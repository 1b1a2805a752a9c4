import { type Static, Type } from '@sinclair/typebox';
import { toServiceError } from '../database/failures.ts';
import { documentationAnchor, ServiceError } from '../errors.ts';
import { SOCKET_VERSION } from './handshake.ts';

/** Headers of every answer of the API: no sniffing, and no page of ours inside a frame of another site. */
const COMMON_HEADERS = { 'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY' };
/** Shared by all answers, because Bun copies such an object faster than it reads a plain one. */
const JSON_HEADERS = new Headers({
  'content-type': 'application/json;charset=utf-8',
  // Even a refusal depends on the origin, so no cache may give it to a page of another one.
  vary: 'Origin',
  ...COMMON_HEADERS,
});

/** Returns an answer of serialized JSON. */
export function jsonResponse(text: string, status = 200): Response {
  return new Response(text, { status, headers: JSON_HEADERS });
}

/** Returns the response for a handler's answer: a value as JSON, or a response of its own with the common headers. */
export function toResponse(answer: unknown): Response {
  if (!(answer instanceof Response)) return jsonResponse(JSON.stringify(answer));
  for (const [name, value] of Object.entries(COMMON_HEADERS)) answer.headers.set(name, value);
  addVary(answer.headers, 'Origin');
  return answer;
}

/** Adds the name of a request header to `Vary`, unless it is there. */
export function addVary(headers: Headers, name: string): void {
  const present = headers.get('vary')?.toLowerCase().split(',') ?? [];
  if (!present.some((one) => one.trim() === name.toLowerCase())) headers.append('vary', name);
}

/** Returns the error that a caller gets: one of the catalogue as it is, one of the database by its code, else ERROR. */
export function toCallersError(failure: unknown): ServiceError {
  if (failure instanceof ServiceError) return failure;
  return toServiceError(failure) ?? new ServiceError('ERROR', {}, { cause: failure });
}

/** The body of every error. */
export const ErrorBody = Type.Object({
  code: Type.String(),
  message: Type.String(),
  ray_id: Type.String({ format: 'uuid' }),
  documentation: Type.String(),
  metadata: Type.Optional(Type.Unknown()),
});

/** The request that failed, and the address of the service, at which its errors are documented. */
interface FailedRequest {
  ray_id: string;
  public_url: string;
}

export function errorBody(error: ServiceError, { ray_id, public_url }: FailedRequest): Static<typeof ErrorBody> {
  return {
    code: error.code,
    message: error.message,
    ray_id,
    documentation: `${public_url}/docs/errors#${documentationAnchor(error.code)}`,
    ...(error.metadata === undefined ? {} : { metadata: error.metadata }),
  };
}

export function errorResponse(error: ServiceError, failed: FailedRequest): Response {
  const response = jsonResponse(JSON.stringify(errorBody(error, failed)), error.status);
  setErrorHeaders(response.headers, error);
  return response;
}

/** Sets the headers that an error's answer has besides those of its content. */
export function setErrorHeaders(headers: Headers, { status, retry_after_ms }: ServiceError): void {
  if (retry_after_ms !== undefined) headers.set('retry-after', String(Math.ceil(retry_after_ms / 1_000)));
  if (status !== 426) return;
  // RFC 9110, 15.5.22, asks for the protocol; RFC 6455, 4.2.2, for its version.
  headers.set('connection', 'Upgrade');
  headers.set('upgrade', 'websocket');
  headers.set('sec-websocket-version', SOCKET_VERSION);
}

/**
 * Returns a page of ours. It may load its own script and style and call the service, and nothing from elsewhere; `connect`
 * adds addresses that its script may call.
 */
export function htmlPage(text: string, connect = ''): Response {
  const policy = `default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src data:; connect-src 'self' ${connect}; base-uri 'none'`;
  return new Response(text, {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
      'referrer-policy': 'no-referrer',
    },
  });
}
