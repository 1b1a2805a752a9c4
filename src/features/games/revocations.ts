import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { MaybePromise } from '../../platform/maybe-promise.ts';
import type { Caller, CallerOf } from '../../platform/tokens/caller.ts';
import { createWatchedCache } from '../../platform/watch/cache.ts';
import type { Feed } from '../../platform/watch/feed.ts';
import type { Identities } from '../identities/identities.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import { topics } from '../topics.ts';
import { selectGame } from './store.ts';

const PEOPLE_MAX = 5_000;
const GAMES_MAX = 5_000;
const SHARES_MAX = 5_000;

/** Returns the parts of a share link that decide whether its token is accepted; undefined if the link is gone. */
export type FindShare = (
  share_id: string,
) => Promise<
  { game_id: string; namespace_id: string; lobby_id: string | null; create_ts: Date; expire_ts: Date } | undefined
>;

export interface RevocationsDependencies {
  database: Database;
  feed: Feed;
  identities: Identities;
  namespaces: Namespaces;
  findShare: FindShare;
}

/**
 * Creates the check whether verified tokens are still accepted. Refuses tokens of deleted identities, tokens of revoked
 * share links, and cloud, service and share tokens issued before the `tokens_not_before` of their game. Results are cached
 * until a change is announced.
 */
export function createRevocations({ database, feed, identities, namespaces, findShare }: RevocationsDependencies) {
  const deleted_identities = createWatchedCache({
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

  const shares = createWatchedCache({ feed, topic: topics.share, load: findShare, entries_max: SHARES_MAX });

  async function requireShare(share_id: string): Promise<void> {
    const share = await shares.get(share_id);
    if (!share) throw new ServiceError('TOKEN_REVOKED', {});
    // Revoking the tokens of a game ends all access that developers gave.
    await requireIssuedAfterRevocation(share.game_id, share.create_ts.getTime());
  }

  async function requireIdentity(identity_id: string): Promise<void> {
    if (await deleted_identities.get(identity_id)) throw new ServiceError('TOKEN_REVOKED', {});
  }

  async function requireIssuedAfterRevocation(game_id: string, issued_at: number | undefined): Promise<void> {
    requireIssuedSince(await not_before.get(game_id), issued_at);
  }

  async function requireServiceTokenNotRevoked({ namespace_id, issued_at }: CallerOf<'service'>): Promise<void> {
    const namespace = await namespaces.find(namespace_id);
    if (namespace) await requireIssuedAfterRevocation(namespace.game_id, issued_at);
  }

  async function gameTopicsOf(namespace_id: string): Promise<string[]> {
    const namespace = await namespaces.find(namespace_id);
    return namespace ? [topics.game(namespace.game_id)] : [];
  }

  async function topicsOfShare(share_id: string): Promise<string[]> {
    const share = await shares.get(share_id);
    return [topics.share(share_id), ...(share ? [topics.game(share.game_id)] : [])];
  }

  return {
    /** Returns the share link of a token; undefined if it was revoked. */
    findShare: (share_id: string) => shares.get(share_id),
    /** Throws TOKEN_REVOKED. */
    requireNotRevoked(caller: Caller): MaybePromise<void> {
      switch (caller.kind) {
        case 'identity':
          return requireIdentity(caller.identity_id);
        case 'cloud':
          return requireIssuedAfterRevocation(caller.game_id, caller.issued_at);
        case 'service':
          return requireServiceTokenNotRevoked(caller);
        case 'share':
          return requireShare(caller.share_id);
        default:
      }
    },
    /** Returns the topics on which the result of `requireNotRevoked` and a person's memberships depend. */
    topicsOf(caller: Caller): MaybePromise<readonly string[]> {
      switch (caller.kind) {
        case 'identity':
          return [topics.gamesOf(caller.identity_id), topics.identity(caller.identity_id)];
        case 'cloud':
          return [topics.game(caller.game_id)];
        case 'service':
          return gameTopicsOf(caller.namespace_id);
        case 'share':
          return topicsOfShare(caller.share_id);
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
