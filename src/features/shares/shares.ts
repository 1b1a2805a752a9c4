import { after, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { startDeletingOld } from '../../platform/loop.ts';
import type { Caller } from '../../platform/tokens/caller.ts';
import type { TokenStamp, Tokens } from '../../platform/tokens/tokens.ts';
import * as store from './store.ts';
import type { ShareRow } from './tables.ts';

/** Maximum number of valid shares of a namespace. */
const SHARES_MAX = 100;

export interface SharesDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  tokens: Tokens;
  public_url: string;
  /** Authorizes a caller to issue a token of the game, and returns the token's id and time. */
  authorizeTokenIssue(caller: Caller, game_id: string): Promise<TokenStamp>;
  /** Returns when the tokens of a game were revoked; undefined if never. */
  tokensNotBefore(game_id: string): Promise<Date | undefined>;
  /** Returns the namespace of a lobby of a game. */
  namespaceOfLobby(lobby: { game_id: string; lobby_id: string }): Promise<string | undefined>;
}

interface WantedShare {
  game_id: string;
  namespace_id: string;
  lobby_id: string | undefined;
  display_name: string;
  lifetime_ms: number;
}

export type Shares = ReturnType<typeof createShares>;

/** Creates the use cases of shares: links by which anyone can look at a namespace or one lobby, and change nothing. */
export function createShares(dependencies: SharesDependencies) {
  const { database, clock, events, tokens, public_url, authorizeTokenIssue, tokensNotBefore, namespaceOfLobby } =
    dependencies;

  async function validSharesOf({ game_id, namespace_id }: Pick<WantedShare, 'game_id' | 'namespace_id'>) {
    const not_before = await tokensNotBefore(game_id);
    return { namespace_id, now: clock.now(), not_before, shares_max: SHARES_MAX };
  }

  return {
    /** Creates a share and its token. Throws MATCHMAKER_LOBBY_NOT_FOUND or SHARES_TOO_MANY. */
    async create(caller: Caller, { lifetime_ms, lobby_id, ...wanted }: WantedShare) {
      const { game_id, namespace_id } = wanted;
      if (lobby_id !== undefined && (await namespaceOfLobby({ game_id, lobby_id })) !== namespace_id) {
        throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
      }
      const { token_id: share_id, at } = await authorizeTokenIssue(caller, game_id);
      const row = { ...wanted, share_id, lobby_id: lobby_id ?? null, create_ts: at, expire_ts: after(at, lifetime_ms) };
      if (!(await store.insertShare(database, row, await validSharesOf(wanted)))) {
        throw new ServiceError('SHARES_TOO_MANY', { max: SHARES_MAX });
      }
      const token = await tokens.issue({ kind: 'share', share_id }, { lifetime_ms, stamp: { token_id: share_id, at } });
      const page = `${public_url}/hub/${game_id}/${namespace_id}${lobby_id === undefined ? '' : `/lobbies/${lobby_id}`}`;
      return { row, token, url: `${page}#share=${token}` };
    },
    /** Returns the valid shares of a namespace, newest first. */
    list: async (scope: Pick<WantedShare, 'game_id' | 'namespace_id'>) =>
      await store.selectShares(database.queries, await validSharesOf(scope)),
    find: (share_id: string): Promise<ShareRow | undefined> => store.selectShare(database.queries, share_id),
    /** Throws SHARE_NOT_FOUND. */
    async get(share_id: string): Promise<ShareRow> {
      const row = await store.selectShare(database.queries, share_id);
      if (!row) throw new ServiceError('SHARE_NOT_FOUND', {});
      return row;
    },
    /** Revokes a share: its token is refused at once, also where it watches something. Throws SHARE_NOT_FOUND. */
    async revoke(namespace_id: string, share_id: string): Promise<void> {
      if (!(await store.deleteShare(database, namespace_id, share_id))) throw new ServiceError('SHARE_NOT_FOUND', {});
    },
    /** Starts the loop that deletes expired shares. */
    startDeletingOld: (signal: AbortSignal) =>
      startDeletingOld({
        name: 'old-shares',
        signal,
        events,
        deleteOld: () => store.deleteSharesBefore(database.queries, clock.now()),
      }),
  };
}
