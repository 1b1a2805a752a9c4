const MINUTE_MS = 60_000;
const WINDOW_MINUTES = 15;
export const WINDOW_MS = WINDOW_MINUTES * MINUTE_MS;

/** How often somebody may do something. Each who is counted has a count of his own (`by`); nothing is counted for all. */
export interface Limit {
  /** Routes whose limits have one name share one count. */
  name: string;
  requests: number;
  /** Windows begin at multiples of this since 1970, for everybody. */
  window_ms: number;
  /**
   * `caller`: by whoever the token belongs to; where all players share one, or there is none, by the address too.
   * `address`: by the address, whatever token comes from there.
   */
  by: 'caller' | 'address';
  /** `everywhere`: by all processes together, where they share a store. `here`: what spares this process. */
  counted: 'everywhere' | 'here';
  /** What becomes of a request while the store cannot be asked: it is counted by this process alone, or refused. */
  when_store_is_lost: 'count_here' | 'refuse';
}

type LimitOptions = Partial<Pick<Limit, 'window_ms' | 'by' | 'counted' | 'when_store_is_lost'>>;

/** A limit of so many requests a minute, of which those of 15 minutes may come at once (field-behaviour 3.4). */
export function perMinute(name: string, requests_per_minute: number, options: LimitOptions = {}): Limit {
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

/** The same where those of one minute may come at once: who has had enough waits less. */
export function inOneMinute(name: string, requests: number, options: LimitOptions = {}): Limit {
  return perMinute(name, requests, { ...options, window_ms: MINUTE_MS });
}

const REQUESTS_PER_MINUTE = { GET: 128, PATCH: 32, POST: 16, PUT: 16, DELETE: 16 } as const;

/** The limit of a route that names none (field-behaviour 3.4). */
export function defaultLimit(method: keyof typeof REQUESTS_PER_MINUTE, path: string): Limit {
  return perMinute(`${method} ${path}`, REQUESTS_PER_MINUTE[method]);
}
