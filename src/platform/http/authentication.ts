import { ServiceError } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Caller } from '../tokens/caller.ts';
import type { Tokens, Verified } from '../tokens/tokens.ts';
import { createSharedReads } from '../watch/shared-reads.ts';
import type { Authorization } from '../watch/watch.ts';
import type { Exchange } from './exchange.ts';
import type { CountedClient, RateLimiter } from './rate-limits.ts';
import type { Route } from './route.ts';

/** Compared with its case, as the reference API does. */
const BEARER = 'Bearer ';

/** Namespaces whose pages need no token (specification: tokenless authentication). */
export interface TokenlessOrigins {
  /**
   * Returns the namespace whose pages have this origin; undefined if they need a token. Calls `countLookup` before each read
   * of the database.
   */
  findByOrigin(origin: string, countLookup: () => MaybePromise<void>): Promise<string | undefined>;
  /** Returns the topics that announce changes of that result. */
  topicsOf(origin: string, namespace_id: string): string[];
}

/**
 * The caller of a request. `authorization`: how to check again a caller without a token; a token is checked again by the
 * route's authorizer.
 */
export interface Authenticated {
  caller: Caller | undefined;
  authorization?: Authorization;
}

export type OriginAuthenticator = ReturnType<typeof createOriginAuthenticator>;

interface TokenReaderDependencies {
  tokens: Tokens;
  rate_limiter: RateLimiter;
}

interface AuthenticatorDependencies extends TokenReaderDependencies {
  authenticateByOrigin: OriginAuthenticator;
}

const ANYONE: Authenticated = { caller: undefined };

/**
 * Creates the function that authenticates the requests to a route: by their token, or by the page that sent them. It returns
 * a promise only for a request without a token, or with one that was not used lately. It throws API_UNAUTHORIZED,
 * TOKEN_INVALID or CLAIMS_ENTITLEMENT_EXPIRED.
 */
export function createAuthenticator(
  { allow, is_tokenless }: Route,
  { tokens, authenticateByOrigin, rate_limiter }: AuthenticatorDependencies,
): (exchange: Exchange) => MaybePromise<Authenticated> {
  const readToken = createTokenReader({ tokens, rate_limiter });

  async function authenticateAnew(exchange: Exchange, token: string | undefined): Promise<Authenticated> {
    const by_origin = is_tokenless ? await authenticateByOrigin(exchange.request.headers, exchange) : undefined;
    if (by_origin) return by_origin;
    if (token !== undefined) return { caller: (await readToken(token, exchange)).caller };
    await rate_limiter.countRefusedToken(exchange);
    throw new ServiceError('API_UNAUTHORIZED', {});
  }

  if (allow === 'anyone') return () => ANYONE;
  return (exchange) => {
    const token = readBearer(exchange.request.headers);
    const caller = token === undefined ? undefined : tokens.recall(token);
    return caller ? { caller } : authenticateAnew(exchange, token);
  };
}

/**
 * Creates the function that verifies a token for a client. It throws TOKEN_INVALID or CLAIMS_ENTITLEMENT_EXPIRED, and
 * API_RATE_LIMIT for a client that sends too many such tokens.
 */
export function createTokenReader({ tokens, rate_limiter }: TokenReaderDependencies) {
  return async (token: string, client: CountedClient): Promise<Verified> => {
    await rate_limiter.countVerification(client);
    try {
      return await tokens.read(token);
    } catch (error) {
      await rate_limiter.countRefusedToken(client);
      throw error;
    }
  };
}

/**
 * Creates the function that authenticates a request without a token by the page that sent it, as a public caller. It throws
 * API_RATE_LIMIT for a client that sends too many unknown origins.
 */
export function createOriginAuthenticator(
  origins: TokenlessOrigins,
  { countHostLookup }: Pick<RateLimiter, 'countHostLookup'>,
) {
  // One change of a namespace makes all players on its pages be checked again.
  const share = createSharedReads<string | undefined>();
  return async (headers: Headers, client: CountedClient): Promise<Required<Authenticated> | undefined> => {
    const origin = headers.get('origin');
    if (origin === null || readBearer(headers) !== undefined) return undefined;
    const namespace_id = await origins.findByOrigin(origin, () => countHostLookup(client));
    if (namespace_id === undefined) return undefined;
    const check = async () => {
      const found = await share(origin, () => origins.findByOrigin(origin, noCount));
      if (found !== namespace_id) throw new ServiceError('API_UNAUTHORIZED', {});
    };
    const topics = origins.topicsOf(origin, namespace_id);
    return { caller: { kind: 'public', namespace_id }, authorization: { topics, check } };
  };
}

/** The client did not ask for this lookup. */
function noCount(): void {}

/** Returns the token of the header "Authorization: Bearer TOKEN". */
export function readBearer(headers: Headers): string | undefined {
  const header = headers.get('authorization');
  return header?.startsWith(BEARER) ? header.slice(BEARER.length).trim() : undefined;
}
