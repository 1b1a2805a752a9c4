import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import { type Soon, whenThere } from '../../platform/soon.ts';
import type { Caller } from '../../platform/tokens/caller.ts';
import { createWatchedCache } from '../../platform/watch/cache.ts';
import type { Feed } from '../../platform/watch/feed.ts';
import type { Identities } from '../identities/identities.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import { topics } from '../topics.ts';
import { selectGame } from './store.ts';

const PEOPLE_MAX = 5_000;
const GAMES_MAX = 5_000;

interface StandingDependencies {
  database: Database;
  feed: Feed;
  identities: Identities;
  namespaces: Namespaces;
}

/**
 * Creates the check whether verified tokens are still accepted: refuses tokens of deleted identities, and cloud and
 * service tokens older than the `tokens_not_before` of their game. Results are cached until a change is announced.
 */
export function createStanding({ database, feed, identities, namespaces }: StandingDependencies) {
  const forgotten = createWatchedCache({
    feed,
    topic: topics.identity,
    load: async (identity_id: string) => (await identities.find(identity_id))?.is_deleted === true,
    entries_max: PEOPLE_MAX,
  });
  const not_before = createWatchedCache({
    feed,
    topic: topics.game,
    load: async (game_id: string) => (await selectGame(database.queries, game_id))?.tokens_not_before ?? undefined,
    entries_max: GAMES_MAX,
  });

  const requireAge = (game_id: string, issued_at: number | undefined): Soon<void> =>
    whenThere(not_before.get(game_id), (moment) => requireIssuedSince(moment, issued_at));

  return {
    /** Throws TOKEN_REVOKED. */
    authenticate(caller: Caller): Soon<void> {
      switch (caller.kind) {
        case 'identity':
          return whenThere(forgotten.get(caller.identity_id), (is_forgotten) => {
            if (is_forgotten) throw new ServiceError('TOKEN_REVOKED', {});
          });
        case 'cloud':
          return requireAge(caller.game_id, caller.issued_at);
        case 'service':
          return whenThere(namespaces.find(caller.namespace_id), (namespace) =>
            namespace ? requireAge(namespace.game_id, caller.issued_at) : undefined,
          );
        default:
      }
    },
    /** Returns the topics on which the result of `authenticate` and a person's memberships depend. */
    newsOf(caller: Caller): Soon<readonly string[]> {
      switch (caller.kind) {
        case 'identity':
          return [topics.gamesOf(caller.identity_id), topics.identity(caller.identity_id)];
        case 'cloud':
          return [topics.game(caller.game_id)];
        case 'service':
          return whenThere(namespaces.find(caller.namespace_id), (namespace) =>
            namespace ? [topics.game(namespace.game_id)] : [],
          );
        default:
          return [];
      }
    },
  };
}

/** Throws TOKEN_REVOKED if the token was issued before the moment. */
export function requireIssuedSince(moment: Date | null | undefined, issued_at: number | undefined): void {
  if (moment && issued_at !== undefined && issued_at < moment.getTime()) throw new ServiceError('TOKEN_REVOKED', {});
}
