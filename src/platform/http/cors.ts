import { ServiceError } from '../errors.ts';

const METHODS = 'GET, POST, PUT, PATCH, DELETE';
/** Headers that are read, and those that the reference API's clients send. */
const HEADERS = 'Content-Type, Authorization, X-API-Version, X-Fern-Language, X-Fern-Runtime, X-Fern-Runtime-Version';
const MAX_AGE_S = 3_600;

/** Paths that games call from their own pages, and public files. All others are for developers and operators. */
const OPEN_TO_ALL_ORIGINS =
  /^\/(matchmaker|v1|identity|group|portal|media|uploads|health|watch|client\.js|hub-files)(\/|$)/;

/** Tells browsers which pages may read an answer. */
export interface Cors {
  /** Returns headers for the answer to a page of an origin. Throws API_CORS_ORIGIN_NOT_ALLOWED if it may not call this path. */
  headersFor(origin: string | null, path: string): Record<string, string>;
  /** Returns headers for the answer to a preflight. */
  preflightHeaders(origin: string | null, path: string): Record<string, string>;
}

/** `own_urls`: the addresses of the service itself, whose pages may call every path. */
export function createCors(own_urls: string[]): Cors {
  const own_origins = [...new Set(own_urls.map((url) => new URL(url).origin))];

  function headersFor(origin: string | null, path: string): Record<string, string> {
    if (origin === null) return {};
    if (!OPEN_TO_ALL_ORIGINS.test(path) && !own_origins.includes(origin)) {
      throw new ServiceError('API_CORS_ORIGIN_NOT_ALLOWED', { origins: own_origins.join(', ') });
    }
    // Not "*", because clients of the reference API send credentials. The open paths read no cookies.
    return {
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
      'access-control-expose-headers': 'rvt-ray-id, retry-after, ratelimit-limit, ratelimit-remaining, ratelimit-reset',
    };
  }
  return {
    headersFor,
    preflightHeaders: (origin, path) => ({
      ...headersFor(origin, path),
      'access-control-allow-methods': METHODS,
      'access-control-allow-headers': HEADERS,
      'access-control-max-age': String(MAX_AGE_S),
    }),
  };
}
