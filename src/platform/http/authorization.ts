import { ServiceError } from '../errors.ts';
import { type MaybePromise, whenKnown } from '../maybe-promise.ts';
import type { Caller, CallerKind } from '../tokens/caller.ts';
import type { Authorization } from '../watch/watch.ts';
import type { AnyInput } from './call.ts';
import { createParamsReader, type RawParams } from './path.ts';
import { createQueryReader } from './query.ts';
import { namesEnvironment, type Route } from './route.ts';

/** What a path names of a game. */
export interface Scope {
  game_id: string;
  namespace_id?: string;
  lobby_id?: string;
}

/** Authorizes callers for the games that paths name. */
export interface Tenants {
  /** Throws if the caller may not act within the game, and within the namespace or environment if the path names one. */
  authorize(caller: Caller, scope: Scope, access: 'read' | 'write'): Promise<void>;
  /** Throws TOKEN_REVOKED if the caller's valid token was revoked. */
  requireNotRevoked(caller: Caller): MaybePromise<void>;
  /** Returns the topics that announce changes to what the two methods above decide; empty if nothing changes it. */
  topicsOf(caller: Caller): MaybePromise<readonly string[]>;
}

/** A request whose caller is authenticated, but not authorized yet. */
interface AuthenticatedRequest {
  caller: Caller | undefined;
  raw_params: RawParams;
  search: URLSearchParams;
}

/** Authorizes the requests to one route. */
export interface Authorizer {
  /**
   * Checks that a caller may call the route: the kind of its token, whether that was revoked, and its access to the game that
   * the path names. Returns what the route gets of the request.
   */
  authorize(request: AuthenticatedRequest): MaybePromise<AnyInput>;
  /** Returns how to check that again later; undefined if nothing can revoke it. */
  authorizationOf(input: AnyInput): MaybePromise<Authorization | undefined>;
}

export function createAuthorizer(route: Route, tenants: Tenants): Authorizer {
  const { allow, access, path } = route;
  const readParams = createParamsReader(route);
  const readQuery = route.query ? createQueryReader(route.query) : () => NO_QUERY;

  function requireAccess(caller: Caller, params: Record<string, string>): MaybePromise<void> {
    return whenKnown(tenants.requireNotRevoked(caller), () =>
      access ? tenants.authorize(caller, scopeOf(params), access) : undefined,
    );
  }

  /** Refuses a caller whose kind is not allowed. A revoked token is refused as such, whatever its kind. */
  async function refuseKind(caller: Caller, allowed: readonly CallerKind[]): Promise<never> {
    await tenants.requireNotRevoked(caller);
    // Like Rivet: a service token is valid on the paths of an environment, but may not use all of them.
    if (caller.kind === 'service' && namesEnvironment(path)) {
      throw new ServiceError('API_FORBIDDEN', {
        reason: `it does not accept a service token; use one of: ${allowed.join(', ')}`,
      });
    }
    throw new ServiceError('CLAIMS_MISSING_ENTITLEMENT', { entitlements: allowed.join(', ') });
  }

  return {
    authorize({ caller, raw_params, search }) {
      if (allow !== 'anyone') {
        if (!caller) throw new ServiceError('API_UNAUTHORIZED', {});
        if (!allow.includes(caller.kind)) return refuseKind(caller, allow);
      }
      const params = readParams(raw_params);
      const checking = caller && requireAccess(caller, params);
      return whenKnown(checking, () => ({ caller, params, query: readQuery(search) }));
    },
    authorizationOf({ caller, params }) {
      if (!caller) return undefined;
      const check = async () => {
        // Lets the feed's other subscribers run first: they invalidate the caches that are read here.
        await Promise.resolve();
        await requireAccess(caller, params);
      };
      return whenKnown(tenants.topicsOf(caller), (topics) => (topics.length === 0 ? undefined : { topics, check }));
    },
  };
}

const NO_QUERY = {};

function scopeOf(params: Record<string, string>): Scope {
  const { game_id = '', namespace_id, environment_id = namespace_id, lobby_id } = params;
  return {
    game_id,
    ...(environment_id !== undefined && { namespace_id: environment_id }),
    ...(lobby_id !== undefined && { lobby_id }),
  };
}
