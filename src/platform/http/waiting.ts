import { ServiceError } from '../errors.ts';
import { complete, errorResponse } from './answers.ts';
import { hasBody } from './body.ts';
import type { Cors } from './cors.ts';

/** When clients ask again: the service does not know how long it will wait. */
const RETRY_AFTER_MS = 2_000;

interface WaitingOptions {
  cors: Cors;
  public_url: string;
  /** Why the service is not ready, in words. */
  reason(): string;
}

/** Makes the function that answers every request while the service waits for its database: it lives, and is not ready. */
export function createWaitingAnswers({ cors, public_url, reason }: WaitingOptions) {
  function answer(request: Request, path: string): Response {
    const reasons = [reason()];
    if (path === '/health/live') return Response.json({ status: 'ok' });
    if (path === '/health/ready') {
      throw new ServiceError('SERVICE_NOT_READY', { reasons: reasons.join('; ') }, { metadata: { reasons } });
    }
    if (request.method === 'OPTIONS')
      return new Response(null, { status: 204, headers: cors.preflightHeaders(request, path) });
    throw new ServiceError('DATABASE_UNAVAILABLE', {}, { retry_after_ms: RETRY_AFTER_MS });
  }

  return (request: Request): Response => {
    const ray_id = Bun.randomUUIDv7();
    const path = URL.parse(request.url)?.pathname ?? '/';
    let headers: Record<string, string> = { vary: 'Origin' };
    let response: Response;
    try {
      headers = cors.headersFor(request, path);
      response = answer(request, path);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      response = errorResponse(error, ray_id, public_url);
    }
    // Nothing reads the body: a client could hold the connection with it.
    if (hasBody(request)) headers.connection = 'close';
    return complete(response, ray_id, headers);
  };
}
