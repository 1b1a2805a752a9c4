import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { isTaken } from '../../platform/database/failures.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Tenants } from '../../platform/http/pipeline.ts';
import type { Caller, CallerOf } from '../../platform/tokens/caller.ts';
import type { IssueOptions, Tokens } from '../../platform/tokens/tokens.ts';
import type { Watchable } from '../../platform/watch/sights.ts';
import type { Datacenters } from '../datacenters/datacenters.ts';
import type { Groups } from '../groups/groups.ts';
import { toGroupSummary } from '../groups/wire.ts';
import { type ContentProblem, refuseProblems } from '../names.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import { toNamespaceSummary } from '../namespaces/wire.ts';
import { topics } from '../topics.ts';
import type { Versions } from '../versions/versions.ts';
import { toVersionSummary } from '../versions/wire.ts';
import { gameProblems, makeNameId } from './rules.ts';
import * as store from './store.ts';
import type { GameRow } from './tables.ts';
import { toGame, toGameProfile, toGameSummary } from './wire.ts';

const NAME_ID_ATTEMPTS = 8;
const NAME_ID_TAKEN: ContentProblem = { path: ['name-id', 'not-unique'] };

interface GamesDependencies {
  database: Database;
  clock: Clock;
  tokens: Tokens;
  groups: Groups;
  namespaces: Namespaces;
  versions: Versions;
  datacenters: Datacenters;
  public_url: string;
}

interface WantedGame {
  display_name: string;
  developer_group_id: string;
  /** Left out: made from the display name. */
  name_id?: string;
}

export type Games = ReturnType<typeof createGames>;

/** What is watched of a game that shows its group, too: neither ever changes. */
type OwnedGame = Pick<GameRow, 'game_id' | 'developer_group_id'>;

const topicsOfOwned = ({ game_id, developer_group_id }: OwnedGame) => [
  topics.game(game_id),
  topics.group(developer_group_id),
];

/** What is hosted, and who may do what with it. */
export function createGames(dependencies: GamesDependencies) {
  const { database, clock, tokens, groups, namespaces, versions, datacenters, public_url } = dependencies;

  async function get(game_id: string): Promise<GameRow> {
    const game = await store.selectGame(database.queries, game_id);
    if (!game) throw new ServiceError('GAME_NOT_FOUND', {});
    return game;
  }

  /** Whether a caller may do anything at all with the game, or with this one environment of it. */
  async function isAtHome(caller: Caller, game_id: string, namespace_id: string | undefined): Promise<boolean> {
    switch (caller.kind) {
      case 'identity':
        return await groups.admits((await get(game_id)).developer_group_id, caller.identity_id);
      case 'cloud':
        return caller.game_id === game_id;
      case 'service':
        return caller.namespace_id === namespace_id;
      default:
        return false;
    }
  }

  const tenants: Tenants = {
    /** Foreign and missing look alike: GAME_NOT_FOUND, and GAME_ENVIRONMENT_NOT_FOUND for a namespace of another game. */
    async admit(caller, { game_id, namespace_id }) {
      if (!(await isAtHome(caller, game_id, namespace_id))) throw new ServiceError('GAME_NOT_FOUND', {});
      if (namespace_id === undefined) return;
      const namespace = await namespaces.find(namespace_id);
      if (namespace?.game_id !== game_id) throw new ServiceError('GAME_ENVIRONMENT_NOT_FOUND', {});
    },
    /** Members come and go; what a token itself says does not change. */
    newsOf: (caller) => (caller.kind === 'identity' ? topics.gamesOf(caller.identity_id) : undefined),
  };

  /** A game with a first version and the namespaces prod and staging, or nothing of it. */
  async function insert({ display_name, developer_group_id }: WantedGame, name_id: string): Promise<string> {
    return await database.transact(async (tx) => {
      const game_id = crypto.randomUUID();
      const watchers = await groups.lockMembers(tx, developer_group_id);
      const pictures = { logo_upload_id: null, banner_upload_id: null };
      const row = { game_id, name_id, display_name, developer_group_id, ...pictures, create_ts: clock.now() };
      await store.insertGame(tx, row, watchers);
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

  /** The games of all groups of an identity, and these groups. Watchable. */
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
        return group ? [toGameSummary(row, group, public_url)] : [];
      }),
      groups: its_groups.map((group) => toGroupSummary(group, true, public_url)),
    };
  }

  /** The one game of a cloud token, as a list. Watchable. */
  const gameOfCloud: Watchable<OwnedGame, Awaited<ReturnType<typeof readGamesOf>>> = {
    topics: topicsOfOwned,
    async read({ game_id }) {
      const row = await get(game_id);
      const group = await groups.get(row.developer_group_id);
      return { games: [toGameSummary(row, group, public_url)], groups: [] };
    },
  };

  /** A game as players see it. Watchable. */
  const profile: Watchable<OwnedGame, ReturnType<typeof toGameProfile>> = {
    topics: topicsOfOwned,
    async read({ game_id }) {
      const row = await get(game_id);
      return toGameProfile(row, await groups.get(row.developer_group_id), public_url);
    },
  };

  return {
    tenants,
    game,
    gamesOf,
    gameOfCloud,
    profile,
    get,
    findByName: (name_id: string) => store.selectGameByName(database.queries, name_id),
    listOfGroup: (group_id: string) => store.selectGamesOf(database.queries, [group_id]),
    async validate(wanted: { display_name: string; name_id?: string | undefined }): Promise<ContentProblem[]> {
      const problems = gameProblems(wanted);
      const is_taken =
        wanted.name_id !== undefined && (await store.selectGameByName(database.queries, wanted.name_id)) !== undefined;
      return is_taken ? [...problems, NAME_ID_TAKEN] : problems;
    },
    /** For members of the group that is to own it. Throws GROUP_NOT_FOUND or VALIDATION_ERROR. */
    async create(caller: CallerOf<'identity'>, wanted: WantedGame): Promise<string> {
      refuseProblems(gameProblems(wanted));
      const group = await groups.get(wanted.developer_group_id);
      if (!(await groups.admits(group.group_id, caller.identity_id))) throw new ServiceError('GROUP_NOT_FOUND', {});
      for (let attempt = 1; ; attempt += 1) {
        const name_id = wanted.name_id ?? makeNameId(wanted.display_name, Math.random);
        try {
          return await insert(wanted, name_id);
        } catch (error) {
          if (!isTaken(error, 'games_name_id')) throw error;
          if (wanted.name_id !== undefined || attempt === NAME_ID_ATTEMPTS) refuseProblems([NAME_ID_TAKEN]);
        }
      }
    },
    /** Throws GAME_NOT_FOUND. */
    async getByName(name_id: string): Promise<GameRow> {
      const row = await store.selectGameByName(database.queries, name_id);
      if (!row) throw new ServiceError('GAME_NOT_FOUND', {});
      return row;
    },
    /** Makes an upload the game's logo or banner. */
    async setPicture(
      game_id: string,
      picture: Partial<Pick<GameRow, 'logo_upload_id' | 'banner_upload_id'>>,
    ): Promise<void> {
      const { developer_group_id } = await get(game_id);
      await database.transact(async (tx) =>
        store.updateGame(tx, game_id, picture, await groups.lockMembers(tx, developer_group_id)),
      );
    },
    /** A token for tools that deploy a game. */
    createCloudToken: (game_id: string, options?: IssueOptions) => tokens.issue({ kind: 'cloud', game_id }, options),
  };
}
