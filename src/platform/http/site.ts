import type { Limit } from '../limits/limit.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { TokenlessOrigins } from './authentication.ts';
import type { Exchange } from './exchange.ts';
import type { RateLimiter } from './rate-limits.ts';

/** The static sites that are served, each under host names of its own. */
export interface ServedSites extends TokenlessOrigins {
  /**
   * Returns the site at the host of a URL; undefined if the host is the API's. Calls `countLookup` before each read of the
   * database.
   */
  find(url: string, countLookup: () => MaybePromise<void>): Promise<Site | undefined>;
}

export interface Site {
  respond(web_request: WebRequest): Promise<Response>;
}

/** A request that is not for the API, but for a site or a game server. */
export class WebRequest {
  readonly request: Request;
  /** Receives the headers of rate limits, and drops them: answers of sites and game servers have none. */
  readonly headers = {};
  readonly #exchange: Exchange;
  readonly #rate_limiter: RateLimiter;

  constructor(exchange: Exchange, rate_limiter: RateLimiter) {
    this.request = exchange.request;
    this.#exchange = exchange;
    this.#rate_limiter = rate_limiter;
  }

  /** The client's address. */
  get address(): string {
    return this.#exchange.address;
  }

  /** Whether the client uses https. */
  get is_https(): boolean {
    return this.#exchange.is_https;
  }

  get is_of_untrusted_proxy(): boolean {
    return this.#exchange.is_of_untrusted_proxy;
  }

  /** Notes that the body was read to its end, so that the connection can carry the next request. */
  noteBodyRead(): void {
    this.#exchange.has_read_body = true;
  }

  /** Counts the request by namespace and address. Throws API_RATE_LIMIT, and LIMITS_UNAVAILABLE where the limit says so. */
  count(limit: Limit, namespace_id: string): MaybePromise<void> {
    return this.#rate_limiter.count(limit, { kind: 'public', namespace_id }, this);
  }

  /** Counts the request by its address alone. Throws what `count` does. */
  countAddress(limit: Limit): MaybePromise<void> {
    return this.#rate_limiter.count(limit, undefined, this);
  }
}
