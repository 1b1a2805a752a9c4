import type { Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { isTaken } from '../../platform/database/failures.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { MaybePromise } from '../../platform/maybe-promise.ts';
import type { DevelopmentPort } from '../../platform/tokens/caller.ts';
import type { TokenStamp, Tokens } from '../../platform/tokens/tokens.ts';
import { createWatchedCache } from '../../platform/watch/cache.ts';
import type { Feed } from '../../platform/watch/feed.ts';
import { refuseProblems } from '../names.ts';
import { topics } from '../topics.ts';
import type { Versions } from '../versions/versions.ts';
import { createCdnSettings, type DomainSettings } from './cdn.ts';
import { updateMatchmakerLimits } from './cdn-store.ts';
import { developmentPortProblems, matchmakerLimitProblems, NAMESPACE_ADVICE, namespaceProblems } from './rules.ts';
import * as store from './store.ts';
import type { NamespaceRow } from './tables.ts';
import { type DevelopmentTokenBody, readDevelopmentPorts } from './wire.ts';

export type { NamespaceScope } from './store.ts';
export type { NamespaceRow } from './tables.ts';

const REMEMBERED_MAX = 10_000;
const HISTORY_DEFAULT = 32;

export interface NamespacesDependencies extends DomainSettings {
  database: Database;
  clock: Clock;
  feed: Feed;
  tokens: Tokens;
  versions: Versions;
}

/** The game of a namespace and the namespace's name, as the key of a cache. */
type Named = `${string}/${string}`;

interface WantedNamespace {
  game_id: string;
  name_id: string;
  display_name: string;
  version_id: string;
}

export type Namespaces = ReturnType<typeof createNamespaces>;

/** Creates the use cases of namespaces: the environments of a game, each on one of its versions. */
export function createNamespaces(dependencies: NamespacesDependencies) {
  const { database, clock, feed, tokens, versions } = dependencies;
  // Every request of a player reads its namespace.
  const remembered = createWatchedCache({
    feed,
    topic: topics.namespace,
    load: (namespace_id: string) => store.selectNamespace(database.queries, namespace_id),
    entries_max: REMEMBERED_MAX,
  });

  // Every request to a site looks up its namespace. A name never goes to another namespace.
  const ids_by_name = createWatchedCache({
    feed,
    topic: (named: Named) => topics.namespaceNamed(...readNamed(named)),
    load: (named: Named) => store.selectNamespaceByNameId(database.queries, ...readNamed(named)),
    entries_max: REMEMBERED_MAX,
  });

  async function get({ game_id, namespace_id }: store.NamespaceScope): Promise<NamespaceRow> {
    const namespace = await remembered.get(namespace_id);
    if (namespace?.game_id !== game_id) throw new ServiceError('NAMESPACE_NOT_FOUND', {});
    return namespace;
  }

  async function insert(tx: Tx, wanted: WantedNamespace): Promise<string> {
    const namespace_id = crypto.randomUUID();
    const row = { namespace_id, ...wanted, create_ts: clock.now() };
    const is_inserted = await store.insertNamespace(tx, row).catch((error: unknown) => {
      if (isTaken(error, 'namespaces_name_id')) refuseProblems([{ path: ['name-id', 'not-unique'] }]);
      throw error;
    });
    if (!is_inserted) throw new ServiceError('GAME_TOO_MANY_NAMESPACES', { max: store.NAMESPACES_MAX });
    return namespace_id;
  }

  /** Runs a change of a namespace. Throws NAMESPACE_NOT_FOUND if it returns false. */
  async function change(scope: store.NamespaceScope, work: (tx: Tx) => Promise<boolean>): Promise<void> {
    const is_changed = await database.transact(work);
    remembered.forget(scope.namespace_id);
    if (!is_changed) throw new ServiceError('NAMESPACE_NOT_FOUND', {});
  }

  return {
    get,
    cdn: createCdnSettings({ ...dependencies, get, change }),
    /** Returns the namespace that a token names. */
    find: remembered.get,
    /** Returns the id of a game's namespace by its name. Calls `count` before it reads the database. */
    findIdByNameId: (game_id: string, name_id: string, count: () => MaybePromise<void>) =>
      ids_by_name.getCounted(`${game_id}/${name_id}`, count),
    list: (game_id: string) => store.selectNamespaces(database.queries, game_id),
    /** Returns the namespaces that are on one of the versions. */
    onVersions: (version_ids: string[]) => store.selectOnVersions(database.queries, version_ids),
    async validate(game_id: string, wanted: { name_id: string; display_name: string }) {
      const existing = await store.selectNamespaceByNameId(database.queries, game_id, wanted.name_id);
      return [...namespaceProblems(wanted), ...(existing ? [{ path: ['name-id', 'not-unique'] }] : [])];
    },
    /** Creates a namespace. Throws VALIDATION_ERROR, VERSION_NOT_FOUND or GAME_TOO_MANY_NAMESPACES. */
    async create(wanted: WantedNamespace): Promise<string> {
      refuseProblems(namespaceProblems(wanted));
      await versions.get(wanted);
      const namespace_id = await database.transact((tx) => insert(tx, wanted));
      ids_by_name.forget(`${wanted.game_id}/${wanted.name_id}`);
      return namespace_id;
    },
    /** Creates a namespace in the transaction that creates its game. */
    createWith: insert,
    /** Moves a namespace to another version of its game. */
    async setVersion(scope: store.NamespaceScope, version_id: string): Promise<void> {
      await versions.get({ game_id: scope.game_id, version_id });
      await change(scope, (tx) => store.updateVersion(tx, scope, version_id, clock));
    },
    validateMatchmakerLimits: matchmakerLimitProblems,
    /** Sets the maximum of lobbies of a namespace and of players per client. Throws VALIDATION_ERROR. */
    async setMatchmakerLimits(
      scope: store.NamespaceScope,
      limits: { lobby_count_max: number; max_players: number },
    ): Promise<void> {
      refuseProblems(matchmakerLimitProblems(limits), NAMESPACE_ADVICE);
      await change(scope, (tx) => updateMatchmakerLimits(tx, scope, limits));
    },
    /** Returns what is wrong with the ports of a development token. Throws CLOUD_INVALID_CONFIG. */
    validateDevelopmentToken: (wanted: Omit<DevelopmentTokenBody, 'hostname'>) =>
      developmentPortProblems(readPorts(wanted)),
    /** Returns the versions of a namespace, latest first; only those of deployments before a moment if one is given. */
    async versionHistory(
      scope: store.NamespaceScope,
      { before, limit = HISTORY_DEFAULT }: { before?: Date | undefined; limit?: number | undefined } = {},
    ) {
      const { namespace_id } = await get(scope);
      return await store.selectDeployments(database.queries, namespace_id, { before, limit });
    },
    /** Issues a token for a game's clients. It is not secret. */
    async createPublicToken(scope: store.NamespaceScope): Promise<string> {
      const { namespace_id, name_id } = await get(scope);
      return await tokens.issue({ kind: 'public', namespace_id }, { suffix: name_id });
    },
    /** Issues a token with which the matchmaker answers as if a lobby ran at `hostname`. */
    async createDevelopmentToken(scope: store.NamespaceScope, wanted: DevelopmentTokenBody): Promise<string> {
      const { namespace_id, name_id } = await get(scope);
      const ports = readPorts(wanted);
      refuseProblems(developmentPortProblems(ports), NAMESPACE_ADVICE);
      const caller = { kind: 'development', namespace_id, hostname: wanted.hostname, ports } as const;
      return await tokens.issue(caller, { suffix: name_id });
    },
    /** Issues a token for a developer's back end, for the servers and builds of this environment. */
    async createServiceToken(scope: store.NamespaceScope, stamp: TokenStamp): Promise<string> {
      const { namespace_id } = await get(scope);
      return await tokens.issue({ kind: 'service', namespace_id }, { stamp });
    },
  };
}

/** Returns the ports of a development token. Throws CLOUD_INVALID_CONFIG if the request has both forms. */
function readPorts(wanted: Omit<DevelopmentTokenBody, 'hostname'>): DevelopmentPort[] {
  if (wanted.ports && wanted.lobby_ports) {
    throw new ServiceError('CLOUD_INVALID_CONFIG', { error: 'it has both ports and lobby_ports; use ports' });
  }
  return readDevelopmentPorts(wanted);
}

function readNamed(named: Named): [game_id: string, name_id: string] {
  const [game_id = '', name_id = ''] = named.split('/');
  return [game_id, name_id];
}
