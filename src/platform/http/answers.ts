import { type Static, Type } from '@sinclair/typebox';
import { toServiceError } from '../database/failures.ts';
import { documentationAnchor, ServiceError } from '../errors.ts';

/** Sent with everything: no sniffing, and no page of ours inside another's frame. */
const COMMON_HEADERS = { 'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY' };
const JSON_HEADERS = { 'content-type': 'application/json;charset=utf-8', ...COMMON_HEADERS };

/** A body that has been serialised already. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Such a body as an answer, with the headers that every answer has: they are added to those that are given. */
export function completeText({ text }: JsonText, ray_id: string, headers: Record<string, string>): Response {
  return new Response(text, { headers: Object.assign(headers, JSON_HEADERS, { 'rvt-ray-id': ray_id }) });
}

/** Adds the headers that every answer has to a response. */
export function complete(response: Response, ray_id: string, headers: Record<string, string>): Response {
  for (const [name, value] of Object.entries({ ...COMMON_HEADERS, ...headers })) {
    if (name === 'vary') addVary(response.headers, value);
    else response.headers.set(name, value);
  }
  response.headers.set('rvt-ray-id', ray_id);
  return response;
}

/** Adds the name of a request header to `Vary`, unless it is there. */
export function addVary(headers: Headers, name: string): void {
  const present = headers.get('vary')?.toLowerCase().split(',') ?? [];
  if (!present.some((one) => one.trim() === name.toLowerCase())) headers.append('vary', name);
}

/**
 * The failure as the caller hears it: what is in the catalogue as it is, the database's troubles by their codes,
 * everything else as ERROR.
 */
export function toCallersError(failure: unknown): ServiceError {
  if (failure instanceof ServiceError) return failure;
  return toServiceError(failure) ?? new ServiceError('ERROR', {}, { cause: failure });
}

/** What every error says. */
export const ErrorBody = Type.Object({
  code: Type.String(),
  message: Type.String(),
  ray_id: Type.String({ format: 'uuid' }),
  documentation: Type.String(),
  metadata: Type.Optional(Type.Unknown()),
});

export function errorBody(error: ServiceError, ray_id: string, public_url: string): Static<typeof ErrorBody> {
  return {
    code: error.code,
    message: error.message,
    ray_id,
    documentation: `${public_url}/docs/errors#${documentationAnchor(error.code)}`,
    ...(error.metadata === undefined ? {} : { metadata: error.metadata }),
  };
}

export function errorResponse(error: ServiceError, ray_id: string, public_url: string): Response {
  const headers: Record<string, string> =
    error.retry_after_ms === undefined ? {} : { 'retry-after': String(Math.ceil(error.retry_after_ms / 1_000)) };
  return Response.json(errorBody(error, ray_id, public_url), { status: error.status, headers });
}

/**
 * A page of ours: its own script and style, calls to the service itself, and nothing from elsewhere. `connect` adds
 * places that its script may connect to.
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
