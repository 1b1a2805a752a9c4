import { ServiceError } from '../errors.ts';

const METHODS = 'GET, POST, PUT, PATCH, DELETE';
/** Beside those that are read, the ones that the reference API's clients send (field-behaviour 3.5). */
const HEADERS = 'Content-Type, Authorization, X-API-Version, X-Fern-Language, X-Fern-Runtime, X-Fern-Runtime-Version';
const MAX_AGE_S = 3_600;

/** Paths that games call from their own pages. The others belong to the people who run games. */
const OPEN_TO_ALL_ORIGINS = /^\/(matchmaker|v1|identity|group|portal|media|uploads|health|watch|client\.js)(\/|$)/;

/** Says to browsers which pages may read an answer (field-behaviour 0.3). */
export interface Cors {
  /** Headers for the answer to a request. Throws API_CORS_ORIGIN_NOT_ALLOWED for a page that may not call this path. */
  headersFor(request: Pick<Request, 'headers'>, path: string): Record<string, string>;
  /** Headers for the answer to a preflight. */
  preflightHeaders(request: Request, path: string): Record<string, string>;
}

/** `own_urls`: the addresses of the service itself, whose pages may call everything. */
export function createCors(own_urls: string[]): Cors {
  const own_origins = [...new Set(own_urls.map((url) => new URL(url).origin))];

  function headersFor(request: Pick<Request, 'headers'>, path: string): Record<string, string> {
    const origin = request.headers.get('origin');
    // The answer would be another for another origin: no cache may give it to all.
    if (origin === null) return { vary: 'Origin' };
    if (!OPEN_TO_ALL_ORIGINS.test(path) && !own_origins.includes(origin)) {
      throw new ServiceError('API_CORS_ORIGIN_NOT_ALLOWED', { origins: own_origins.join(', ') });
    }
    // Named, not "*": clients of the field send credentials. No cookie of ours is read on the open paths.
    return {
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
      'access-control-expose-headers': 'rvt-ray-id, retry-after, ratelimit-limit, ratelimit-remaining, ratelimit-reset',
      vary: 'Origin',
    };
  }
  return {
    headersFor,
    preflightHeaders: (request, path) => ({
      ...headersFor(request, path),
      'access-control-allow-methods': METHODS,
      'access-control-allow-headers': HEADERS,
      'access-control-max-age': String(MAX_AGE_S),
    }),
  };
}
