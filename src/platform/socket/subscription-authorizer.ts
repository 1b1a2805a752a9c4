import { isFault, ServiceError } from '../errors.ts';
import type { Events } from '../events.ts';
import { toCallersError } from '../http/answers.ts';
import { createOriginAuthenticator, createTokenReader, type TokenlessOrigins } from '../http/authentication.ts';
import { createAuthorizer, type Tenants } from '../http/authorization.ts';
import type { Cors } from '../http/cors.ts';
import { createPathReader } from '../http/path.ts';
import { viewOf } from '../http/pipeline.ts';
import { type CountedClient, keyOf, limitFor, type RateLimiter } from '../http/rate-limits.ts';
import { isWatched, type Route } from '../http/route.ts';
import type { Caller } from '../tokens/caller.ts';
import type { Tokens } from '../tokens/tokens.ts';
import { subscribeAll } from '../watch/feed.ts';
import type { View } from '../watch/views.ts';
import type { Authorization, Watch } from '../watch/watch.ts';

const CHECK_AGAIN_AFTER_MS = 1_000;

/** A request to watch what a GET of the path would answer. */
export interface SubscriptionRequest {
  caller: Caller | undefined;
  /** Of the page that opened the socket. */
  origin: string | null;
  client: CountedClient;
  path: string;
  watch_index: string | undefined;
}

export interface AuthorizedSubscription {
  view: View;
  /** The number of the latest answer that the caller has been sent; undefined if it has been sent none. */
  number: number | undefined;
  /** Whether a change may have revoked the authorization: nothing may be sent until that is known. */
  isSuspended(): boolean;
  /** Ends the re-authorization, and frees the caller's slot. */
  leave(): void;
}

/** Callbacks for later changes of an authorization. */
interface AuthorizationListener {
  /** A change may have revoked the authorization. */
  onSuspended(): void;
  onRevoked(error: unknown): void;
  /** The authorization was checked again and still holds. */
  onConfirmed(): void;
}

export interface SubscriptionAuthorizerDependencies {
  routes: Route[];
  tokens: Tokens;
  tenants: Tenants;
  origins: TokenlessOrigins;
  watch: Watch;
  cors: Cors;
  rate_limiter: RateLimiter;
  events: Events;
}

export type SubscriptionAuthorizer = ReturnType<typeof createSubscriptionAuthorizer>;

/** Authorizes a subscription as the GET of its path: by the same routes, tokens, tenants, origins and limits. */
export function createSubscriptionAuthorizer(dependencies: SubscriptionAuthorizerDependencies) {
  const { routes, tokens, tenants, origins, watch, cors, rate_limiter, events } = dependencies;
  const authenticateByOrigin = createOriginAuthenticator(origins, rate_limiter);
  const watched_routes = routes.filter(isWatched).map((route) => ({
    route,
    readPath: createPathReader(route.path),
    authorizer: createAuthorizer(route, tenants),
  }));
  const gets = routes.filter(({ method }) => method === 'GET').map(({ path }) => createPathReader(path));

  /** Finds the route of a path and reads the path's parameters. Throws API_NOT_FOUND or WATCH_NOT_WATCHABLE. */
  function findRoute(path: string) {
    const parts = path.split('/');
    for (const { route, readPath, authorizer } of watched_routes) {
      const raw_params = readPath(parts);
      if (raw_params) return { route, raw_params, authorizer };
    }
    const is_there = gets.some((readPath) => readPath(parts));
    throw new ServiceError(is_there ? 'WATCH_NOT_WATCHABLE' : 'API_NOT_FOUND', {});
  }

  return {
    readToken: createTokenReader({ tokens, rate_limiter }),
    /** Authorizes a subscription, and again after each change until it leaves. Throws what the GET would throw. */
    async authorize(request: SubscriptionRequest, listener: AuthorizationListener): Promise<AuthorizedSubscription> {
      const { caller: token_caller, origin, client, path, watch_index } = request;
      const url = URL.parse(path, 'http://muster');
      if (url?.host !== 'muster') throw new ServiceError('API_NOT_FOUND', {});
      const { route, raw_params, authorizer } = findRoute(url.pathname);
      cors.headersFor(origin, url.pathname);
      const headers = new Headers(origin === null ? {} : { origin });
      const by_origin = token_caller || !route.is_tokenless ? undefined : await authenticateByOrigin(headers, client);
      const caller = token_caller ?? by_origin?.caller;
      const number = watch.readIndex(watch_index ?? url.searchParams.get('watch_index') ?? undefined);
      await rate_limiter.count(limitFor(route, number !== undefined), caller, client);
      // The address is known already, so the caller is counted from its first subscription on.
      const freeSlot = watch.takeSlot(keyOf(caller, client));
      let reauthorization: ReturnType<typeof reauthorizeOnChange> | undefined;
      try {
        const known_caller = route.allow === 'anyone' ? undefined : caller;
        const input = await authorizer.authorize({ caller: known_caller, raw_params, search: url.searchParams });
        const authorization = by_origin?.authorization ?? (await authorizer.authorizationOf(input));
        const onFault = (cause: unknown) => events.emit({ event: 'watch_failed', watched: url.pathname, cause });
        // Subscribes before the last check, so that no change in between is missed.
        if (authorization) reauthorization = reauthorizeOnChange(watch, authorization, { ...listener, onFault });
        await authorization?.check();
        const view = await viewOf(route, input);
        return {
          view,
          number,
          isSuspended: () => reauthorization?.isSuspended() ?? false,
          leave() {
            reauthorization?.leave();
            freeSlot();
          },
        };
      } catch (error) {
        reauthorization?.leave();
        freeSlot();
        throw error;
      }
    },
  };
}

/** Re-authorizes after each change that may have revoked the authorization, until `leave` is called. */
function reauthorizeOnChange(
  watch: Watch,
  { topics, check }: Authorization,
  { onSuspended, onRevoked, onConfirmed, onFault }: AuthorizationListener & { onFault(cause: unknown): void },
) {
  let retry: ReturnType<typeof setTimeout> | undefined;
  let checks = 0;
  let is_suspended = false;
  let is_failing = false;
  const checkAgain = async () => {
    clearTimeout(retry);
    is_suspended = true;
    onSuspended();
    checks += 1;
    const this_check = checks;
    try {
      await check();
      is_failing = false;
      // A later change may have come after this check's read.
      if (this_check !== checks) return;
      is_suspended = false;
      onConfirmed();
    } catch (failure) {
      const error = toCallersError(failure);
      if (error.status < 500) return onRevoked(failure);
      // Once, however often it is retried.
      if (!is_failing && isFault(error)) onFault(error.cause);
      is_failing = true;
      if (this_check === checks) retry = setTimeout(checkAgain, CHECK_AGAIN_AFTER_MS);
    }
  };
  const unsubscribe = subscribeAll(watch, topics, checkAgain);
  return {
    isSuspended: () => is_suspended,
    leave() {
      checks += 1;
      clearTimeout(retry);
      unsubscribe();
    },
  };
}
