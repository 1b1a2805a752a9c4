import type { Clock } from '../../platform/clock.ts';
import type { Database, Queries, Tx } from '../../platform/database/database.ts';
import { isTaken } from '../../platform/database/failures.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Caller, CallerOf } from '../../platform/tokens/caller.ts';
import type { TokenStamp, Tokens } from '../../platform/tokens/tokens.ts';
import { createWatchedCache } from '../../platform/watch/cache.ts';
import type { Feed } from '../../platform/watch/feed.ts';
import type { Watchable } from '../../platform/watch/views.ts';
import type { Datacenters } from '../datacenters/datacenters.ts';
import type { Groups } from '../groups/groups.ts';
import { toGroupSummary } from '../groups/wire.ts';
import type { Identities } from '../identities/identities.ts';
import { type ContentProblem, refuseProblems } from '../names.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import { toNamespaceSummary } from '../namespaces/wire.ts';
import { topics } from '../topics.ts';
import type { Versions } from '../versions/versions.ts';
import { toVersionSummary } from '../versions/wire.ts';
import { type FindShare, requireIssuedSince } from './revocations.ts';
import { gameProblems, makeNameId, withSuffix } from './rules.ts';
import * as store from './store.ts';
import type { GameRow } from './tables.ts';
import { createTenants } from './tenants.ts';
import { toGame, toGameProfile, toGameSummary } from './wire.ts';

const NAME_ID_ATTEMPTS = 8;
const REMEMBERED_NAMES_MAX = 10_000;
const NAME_ID_TAKEN: ContentProblem = { path: ['name-id', 'not-unique'] };

interface GamesSettings {
  public_url: string;
  sites_domain: string;
}

export interface GamesDependencies extends GamesSettings {
  database: Database;
  clock: Clock;
  tokens: Tokens;
  feed: Feed;
  identities: Identities;
  groups: Groups;
  namespaces: Namespaces;
  versions: Versions;
  datacenters: Datacenters;
  /** Returns a share link; undefined if it was revoked. */
  findShare: FindShare;
}

interface WantedGame {
  display_name: string;
  developer_group_id: string;
  /** Derived from the display name if left out. */
  name_id?: string;
  /** Uses the group's game with this display name if there is one. */
  if_missing?: boolean | undefined;
}

export type Games = ReturnType<typeof createGames>;

/** A game and its group, which never changes. */
type OwnedGame = Pick<GameRow, 'game_id' | 'developer_group_id'>;

const topicsOfOwned = ({ game_id, developer_group_id }: OwnedGame) => [
  topics.game(game_id),
  topics.group(developer_group_id),
];

/** Creates the use cases of games, and `tenants`, which authorizes callers. */
export function createGames(dependencies: GamesDependencies) {
  const { database, clock, feed, tokens, groups, namespaces, versions, datacenters } = dependencies;
  const { public_url, sites_domain } = dependencies;
  const addresses = { public_url, sites_domain };

  const tenants = createTenants(dependencies);
  // Every request to a site looks up its game. A name never goes to another game.
  const ids_by_name = createWatchedCache({
    feed,
    topic: topics.gameNamed,
    load: async (name_id: string) => (await store.selectGameByNameId(database.queries, name_id))?.game_id,
    entries_max: REMEMBERED_NAMES_MAX,
  });

  async function get(game_id: string, queries: Queries = database.queries): Promise<GameRow> {
    const game = await store.selectGame(queries, game_id);
    if (!game) throw new ServiceError('GAME_NOT_FOUND', {});
    return game;
  }

  /** Inserts a game with a first version and the namespaces prod and staging, in one transaction. */
  async function insert(wanted: WantedGame, name_id: string): Promise<string> {
    const { display_name, developer_group_id, if_missing = false } = wanted;
    return await database.transact(async (tx) => {
      const game_id = crypto.randomUUID();
      // Until the transaction ends, no other game of the group is created.
      const member_ids = await groups.lockMembers(tx, developer_group_id);
      const known = if_missing ? await store.selectGameByDisplayName(tx, developer_group_id, display_name) : undefined;
      if (known) return known.game_id;
      if ((await store.countGamesOf(tx, developer_group_id)) >= store.GAMES_MAX) {
        throw new ServiceError('GROUP_TOO_MANY_GAMES', { max: store.GAMES_MAX });
      }
      const pictures = { logo_upload_id: null, banner_upload_id: null };
      const names = { game_id, name_id, display_name, developer_group_id };
      const row = { ...names, ...pictures, create_ts: clock.now(), tokens_not_before: null, player_count: 0 };
      await store.insertGame(tx, row, member_ids);
      const { version_id } = await versions.createFirst(tx, game_id);
      await namespaces.createWith(tx, { game_id, version_id, name_id: 'prod', display_name: 'Production' });
      await namespaces.createWith(tx, { game_id, version_id, name_id: 'staging', display_name: 'Staging' });
      return game_id;
    });
  }

  /** A game as its developers see it. Watchable. */
  const game: Watchable<string, ReturnType<typeof toGame>> = {
    topics: (game_id) => [topics.game(game_id), topics.datacenters()],
    async read(game_id) {
      const [row, its_namespaces, its_versions, all_datacenters] = await Promise.all([
        get(game_id),
        namespaces.list(game_id),
        versions.list(game_id),
        datacenters.list(),
      ]);
      return toGame(row, {
        namespaces: its_namespaces.map(toNamespaceSummary),
        versions: its_versions.map(toVersionSummary),
        datacenters: all_datacenters,
        public_url,
      });
    },
  };

  /** The groups of an identity and their games. Watchable. */
  const gamesOf: Watchable<string, Awaited<ReturnType<typeof readGamesOf>>> = {
    topics: (identity_id) => [topics.gamesOf(identity_id)],
    read: readGamesOf,
  };

  async function readGamesOf(identity_id: string) {
    const its_groups = await groups.listOf(identity_id);
    const by_id = new Map(its_groups.map((group) => [group.group_id, group]));
    const its_games = await store.selectGamesOf(database.queries, [...by_id.keys()]);
    return {
      games: its_games.flatMap((row) => {
        const group = by_id.get(row.developer_group_id);
        return group ? [toGameSummary(row, group, addresses)] : [];
      }),
      groups: its_groups.map((group) => toGroupSummary(group, true, public_url)),
    };
  }

  /** The game of a cloud token, as a list. Watchable. */
  const gameOfCloud: Watchable<OwnedGame, Awaited<ReturnType<typeof readGamesOf>>> = {
    topics: topicsOfOwned,
    async read({ game_id }) {
      const row = await get(game_id);
      const group = await groups.get(row.developer_group_id);
      return { games: [toGameSummary(row, group, addresses)], groups: [] };
    },
  };

  /** A game as players see it. Watchable. */
  const profile: Watchable<OwnedGame, ReturnType<typeof toGameProfile>> = {
    topics: topicsOfOwned,
    async read({ game_id }) {
      const row = await get(game_id);
      return toGameProfile(row, await groups.get(row.developer_group_id), addresses);
    },
  };

  return {
    tenants,
    game,
    gamesOf,
    gameOfCloud,
    profile,
    get: (game_id: string) => get(game_id),
    findByNameId: (name_id: string) => store.selectGameByNameId(database.queries, name_id),
    /** Returns the id of the game with a name. Calls `count` before it reads the database. */
    findIdByNameId: ids_by_name.getCounted,
    /** Returns the developer groups of games, by game. */
    async developerGroupsOf(game_ids: string[]): Promise<Map<string, string>> {
      const rows = await store.selectGroupsOf(database.queries, game_ids);
      return new Map(rows.map(({ game_id, developer_group_id }) => [game_id, developer_group_id]));
    },
    /** Returns ids of a group's games after the id `after`, in order, at most 1,000. */
    idsOfGroup: (group_id: string, after: string | undefined) =>
      store.selectGameIdsOf(database.queries, group_id, after),
    /** Returns what is wrong with a game's display name. Creating the game derives the name id from it. */
    validate: ({ display_name }: { display_name: string }): ContentProblem[] => gameProblems({ display_name }),
    /** Creates a game, for members of its group. Throws GROUP_NOT_FOUND, GROUP_TOO_MANY_GAMES or VALIDATION_ERROR. */
    async create(caller: CallerOf<'identity'>, wanted: WantedGame): Promise<string> {
      refuseProblems(gameProblems(wanted));
      const group = await groups.get(wanted.developer_group_id);
      if (!(await groups.mayActAsMember({ group_id: group.group_id, identity_id: caller.identity_id })))
        throw new ServiceError('GROUP_NOT_FOUND', {});
      for (let attempt = 1; ; attempt += 1) {
        const derived = makeNameId(wanted.display_name);
        const name_id = wanted.name_id ?? (attempt === 1 ? derived : withSuffix(derived, Math.random));
        try {
          const game_id = await insert(wanted, name_id);
          ids_by_name.forget(name_id);
          return game_id;
        } catch (error) {
          if (!isTaken(error, 'games_name_id')) throw error;
          if (wanted.name_id !== undefined || attempt === NAME_ID_ATTEMPTS) refuseProblems([NAME_ID_TAKEN]);
        }
      }
    },
    /** Throws GAME_NOT_FOUND. */
    async getByNameId(name_id: string): Promise<GameRow> {
      const row = await store.selectGameByNameId(database.queries, name_id);
      if (!row) throw new ServiceError('GAME_NOT_FOUND', {});
      return row;
    },
    /** Makes an upload the game's logo or banner. Returns the replaced upload. */
    async setPicture(
      tx: Tx,
      game_id: string,
      column: 'logo_upload_id' | 'banner_upload_id',
      upload_id: string,
    ): Promise<string | null> {
      const { developer_group_id } = await get(game_id, tx);
      const member_ids = await groups.lockMembers(tx, developer_group_id);
      const before = await get(game_id, tx);
      await store.updateGame(tx, game_id, { [column]: upload_id }, member_ids);
      return before[column];
    },
    /** Issues a token for tools that deploy a game. `stamp` comes from `authorizeTokenIssue`. */
    createCloudToken: (game_id: string, stamp: TokenStamp) => tokens.issue({ kind: 'cloud', game_id }, { stamp }),
    /**
     * Authorizes a caller to issue a token of the game, and returns the token's id and time. A caller that loses the
     * right concurrently is refused, or gets a token that is refused. Throws GAME_NOT_FOUND or TOKEN_REVOKED.
     */
    async authorizeTokenIssue(caller: Caller, game_id: string): Promise<TokenStamp> {
      const at = await database.transact(async (tx) => {
        // Waits for concurrent revocations.
        const row = await store.lockGameAgainstChanges(tx, game_id);
        if (!row) throw new ServiceError('GAME_NOT_FOUND', {});
        const now = clock.now();
        const { tokens_not_before } = row;
        if (caller.kind === 'cloud') requireIssuedSince(tokens_not_before, caller.issued_at);
        // For a minute after a revocation, its time is ahead of this clock, and new tokens get it.
        return tokens_not_before && tokens_not_before > now ? tokens_not_before : now;
      });
      await tenants.authorize(caller, { game_id }, 'write');
      return { token_id: crypto.randomUUID(), at };
    },
    /** Returns when the tokens of a game were revoked; undefined if never. */
    tokensNotBefore: async (game_id: string) =>
      (await store.selectGame(database.queries, game_id))?.tokens_not_before ?? undefined,
    /** Revokes the cloud and service tokens of a group's games when the transaction commits. */
    revokeTokensOf: (tx: Tx, group_id: string) => store.revokeTokens(tx, { developer_group_id: group_id }, clock),
    /** Revokes all cloud and service tokens and share links of a game, for the owner of its group. */
    async revokeTokens({ identity_id }: CallerOf<'identity'>, game_id: string): Promise<void> {
      const { developer_group_id } = await get(game_id);
      await groups.requireOwner({ group_id: developer_group_id, identity_id });
      await database.transact((tx) => store.revokeTokens(tx, { game_id }, clock));
    },
  };
}
