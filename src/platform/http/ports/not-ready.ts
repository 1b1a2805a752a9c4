import { ServiceError } from '../../errors.ts';
import type { Unavailability } from '../../unavailability.ts';
import { errorResponse, toResponse } from '../answers.ts';
import { closeAfterBody } from '../body.ts';
import type { Cors } from '../cors.ts';
import { notReady } from '../health.ts';

/** When clients should try again: the service does not know how long it will wait. */
const RETRY_AFTER_MS = 2_000;

interface NotReadyOptions {
  cors: Cors;
  public_url: string;
  /** Returns what the service waits for. */
  unavailability(): Unavailability;
}

/**
 * Creates the function that answers every request while the service waits for its database or storage: `/health/live`
 * succeeds, and all other paths are unavailable.
 */
export function createNotReadyAnswers({ cors, public_url, unavailability }: NotReadyOptions) {
  function answer({ method }: Request, origin: string | null, path: string): Response {
    if (path === '/health/live') return toResponse({ status: 'ok' });
    if (path === '/health/ready') throw notReady([unavailability().finding]);
    if (method === 'OPTIONS') {
      return toResponse(new Response(null, { status: 204, headers: cors.preflightHeaders(origin, path) }));
    }
    throw new ServiceError(unavailability().code, {}, { retry_after_ms: RETRY_AFTER_MS });
  }

  return (request: Request): Response => {
    const ray_id = Bun.randomUUIDv7();
    const path = URL.parse(request.url)?.pathname ?? '/';
    const origin = request.headers.get('origin');
    let headers: Record<string, string> = {};
    let response: Response;
    try {
      headers = cors.headersFor(origin, path);
      response = answer(request, origin, path);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      response = errorResponse(error, { ray_id, public_url });
    }
    for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
    response.headers.set('rvt-ray-id', ray_id);
    return closeAfterBody(request, response);
  };
}
