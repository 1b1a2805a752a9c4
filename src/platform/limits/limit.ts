import { MINUTE_MS } from '../units.ts';

const WINDOW_MINUTES = 15;
const WINDOW_MS = WINDOW_MINUTES * MINUTE_MS;

/** How many requests a caller or an address (`by`) may send within a window. */
export interface Limit {
  /** Routes whose limits have the same name share a count. */
  name: string;
  requests: number;
  /** Windows begin at multiples of this duration since 1970. */
  window_ms: number;
  /**
   * `caller`: counts by token; by token and address if many callers share the token; by address without a token.
   * `address`: counts by address, whatever the token.
   */
  by: 'caller' | 'address';
  /** `everywhere`: in all processes that share a store. `here`: in this process, which the limit protects. */
  counted: 'everywhere' | 'here';
  /** Whether a request is counted by this process alone, or refused, while the store is unavailable. */
  when_store_is_lost: 'count_here' | 'refuse';
}

type LimitOptions = Partial<Pick<Limit, 'window_ms' | 'by' | 'counted' | 'when_store_is_lost'>>;

/** Returns a limit of the average per minute. It applies to windows of 15 minutes, so a single minute may have more. */
export function averagePerMinute(name: string, requests_per_minute: number, options: LimitOptions = {}): Limit {
  const { window_ms = WINDOW_MS } = options;
  return {
    by: 'caller',
    counted: 'everywhere',
    when_store_is_lost: 'count_here',
    ...options,
    name,
    requests: Math.round((requests_per_minute * window_ms) / MINUTE_MS),
    window_ms,
  };
}

/** Returns a limit that applies to each minute, so a caller over it waits for less time. */
export function inEachMinute(name: string, requests: number, options: LimitOptions = {}): Limit {
  return averagePerMinute(name, requests, { ...options, window_ms: MINUTE_MS });
}

const REQUESTS_PER_MINUTE = { GET: 128, PATCH: 32, POST: 16, PUT: 16, DELETE: 16 } as const;

/** Returns the limit of a route that names none. */
export function defaultLimit(method: keyof typeof REQUESTS_PER_MINUTE, path: string): Limit {
  return averagePerMinute(`${method} ${path}`, REQUESTS_PER_MINUTE[method]);
}
