import type { Clock } from '../../../platform/clock.ts';
import type { Database, Queries } from '../../../platform/database/database.ts';
import { toMoment } from '../../../platform/database/moments.ts';
import { ServiceError } from '../../../platform/errors.ts';
import type { Watchable } from '../../../platform/watch/views.ts';
import type { Datacenters } from '../../datacenters/datacenters.ts';
import type { NamespaceScope, Namespaces } from '../../namespaces/namespaces.ts';
import type { Servers } from '../../servers/servers.ts';
import { topics } from '../../topics.ts';
import type { Versions } from '../../versions/versions.ts';
import { selectCounted } from '../listing-store.ts';
import * as playersStore from '../players-store.ts';
import type { Stopping } from '../stopping.ts';
import { type LobbyWithoutState, selectLobby } from '../store.ts';
import type { LobbyRow, PlayerRow } from '../tables.ts';
import { type LobbyDetails, toLobbyDetails } from './details-wire.ts';
import type { HistoryLobby, LiveLobby } from './developer-wire.ts';
import { toHistoryLobby, toLiveLobby } from './developer-wire.ts';
import { gameModeUuid } from './game-mode-uuid.ts';
import * as store from './history-store.ts';
import type { Visits } from './visits-wire.ts';

/** Maximum number of visits returned for players who have left. */
const LEFT_MAX = 200;

export interface DeveloperApiDependencies {
  database: Database;
  clock: Clock;
  namespaces: Namespaces;
  datacenters: Datacenters;
  servers: Servers;
  versions: Versions;
  /** Called after seats were freed: their lobby may be empty now. */
  onSeatsFreed(): void;
}

/** A lobby as it is exported, with the names of its namespace, region, tier, version and game mode. */
export type ExportedLobby = Pick<LobbyRow, 'lobby_id' | 'namespace_id' | 'version_id' | 'create_ts' | 'stop_ts'> &
  Record<
    | 'namespace_name'
    | 'region_id'
    | 'region_name'
    | 'tier_name'
    | 'version_name'
    | 'lobby_group_id'
    | 'lobby_group_name',
    string
  >;

/** The names that an export adds to the ids of lobbies. */
interface ExportNames {
  /** The UUIDs of datacenters, by their slugs. */
  datacenter_ids: ReadonlyMap<string, string>;
  namespace_names: ReadonlyMap<string, string>;
  versions_of_page: ReadonlyMap<string, { display_name: string; modes: Awaited<ReturnType<Versions['gameModes']>> }>;
}

/** Creates the use cases of developers: they watch lobbies, running and stopped, export them, stop them and kick players. */
export function createDeveloperApi(
  { database, clock, namespaces, datacenters, servers, versions, onSeatsFreed }: DeveloperApiDependencies,
  stopping: Stopping,
) {
  const { queries } = database;

  async function toHistoryLobbies(lobbies: LobbyWithoutState[]): Promise<HistoryLobby[]> {
    const server_ids = lobbies.map(({ server_id }) => server_id);
    const [datacenter_ids, outcomes] = await Promise.all([datacenters.idsBySlug(), servers.outcomesOf(server_ids)]);
    return lobbies.map((lobby) => toHistoryLobby(lobby, outcomes.get(lobby.server_id), datacenter_ids));
  }

  async function namespaceNames(game_id: string): Promise<Map<string, string>> {
    return new Map((await namespaces.list(game_id)).map(({ namespace_id, name_id }) => [namespace_id, name_id]));
  }

  /** Returns the versions of lobbies of a game. Reads each version once. */
  async function versionsOf(game_id: string, lobbies: LobbyWithoutState[]): Promise<ExportNames['versions_of_page']> {
    const version_ids = [...new Set(lobbies.map(({ version_id }) => version_id))];
    const entries = await Promise.all(
      version_ids.map(async (version_id) => {
        const { display_name } = await versions.get({ game_id, version_id });
        return [version_id, { display_name, modes: await versions.gameModes({ game_id, version_id }) }] as const;
      }),
    );
    return new Map(entries);
  }

  function toExportedLobby(
    { lobby_id, namespace_id, version_id, region, game_mode, create_ts, stop_ts }: LobbyWithoutState,
    { datacenter_ids, namespace_names, versions_of_page }: ExportNames,
  ): ExportedLobby {
    const version = versions_of_page.get(version_id);
    return {
      lobby_id,
      namespace_id,
      namespace_name: namespace_names.get(namespace_id) ?? '',
      region_id: datacenter_ids.get(region) ?? '',
      region_name: region,
      tier_name: version?.modes.get(game_mode)?.regions.get(region)?.tier ?? '',
      version_id,
      version_name: version?.display_name ?? '',
      lobby_group_id: gameModeUuid(version_id, game_mode),
      lobby_group_name: game_mode,
      create_ts,
      stop_ts,
    };
  }

  async function getLobby(scope: NamespaceScope, lobby_id: string): Promise<LobbyRow> {
    const { namespace_id } = await namespaces.get(scope);
    const lobby = await selectLobby(queries, lobby_id);
    if (lobby?.namespace_id !== namespace_id) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
    return lobby;
  }

  /** The running lobbies of a namespace. Watchable. */
  const running: Watchable<NamespaceScope, LiveLobby[]> = {
    topics: ({ namespace_id }) => [
      topics.lobbiesOf(namespace_id),
      topics.playersOf(namespace_id),
      topics.namespace(namespace_id),
    ],
    async read(scope) {
      const { namespace_id, version_id } = await namespaces.get(scope);
      const [datacenter_ids, lobbies] = await Promise.all([
        datacenters.idsBySlug(),
        selectCounted(queries, namespace_id),
      ]);
      return lobbies.map((lobby) => toLiveLobby(lobby, datacenter_ids, version_id));
    },
  };

  /** The newest 64 lobbies that were created before a given time. Watchable. */
  const history: Watchable<NamespaceScope & { before: Date | undefined }, HistoryLobby[]> = {
    // The topic of servers changes when a lobby's server starts or ends.
    topics: ({ namespace_id }) => [topics.lobbiesOf(namespace_id), topics.serversOf(namespace_id)],
    async read({ before, ...scope }) {
      const { namespace_id } = await namespaces.get(scope);
      return await toHistoryLobbies(await store.selectHistory(queries, namespace_id, before));
    },
  };

  /** A lobby, running or stopped. Throws MATCHMAKER_LOBBY_NOT_FOUND. Watchable. */
  const historyOfLobby: Watchable<NamespaceScope & { lobby_id: string }, HistoryLobby> = {
    topics: ({ lobby_id, namespace_id }) => [topics.lobby(lobby_id), topics.serversOf(namespace_id)],
    async read({ lobby_id, ...scope }) {
      const [history_lobby] = await toHistoryLobbies([await getLobby(scope, lobby_id)]);
      if (!history_lobby) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
      return history_lobby;
    },
  };

  /** A lobby, running or stopped, with its seats and state. Throws MATCHMAKER_LOBBY_NOT_FOUND. Watchable. */
  const details: Watchable<NamespaceScope & { lobby_id: string; includes_code: boolean }, LobbyDetails> = {
    topics: topicsOfPlayers,
    async read({ lobby_id, includes_code, ...scope }) {
      const lobby = await getLobby(scope, lobby_id);
      const seated = await store.selectSeated(queries, lobby_id);
      return toLobbyDetails(includes_code ? lobby : { ...lobby, code: null }, seated);
    },
  };

  /**
   * The players of a lobby, running or stopped, with the latest who have left. Throws MATCHMAKER_LOBBY_NOT_FOUND.
   * Watchable.
   */
  const visits: Watchable<NamespaceScope & { lobby_id: string }, Visits> = {
    topics: topicsOfPlayers,
    async read({ lobby_id, ...scope }) {
      return await readVisits(queries, await getLobby(scope, lobby_id));
    },
  };

  return {
    running,
    history,
    historyOfLobby,
    details,
    visits,
    /** Yields all lobbies of a game that ran within a window (Unix milliseconds), page by page. */
    async *exportPages(game_id: string, window: { start: number; end: number }): AsyncGenerator<ExportedLobby[]> {
      const moments = { start: toMoment(window.start), end: toMoment(window.end) };
      const [datacenter_ids, namespace_names] = await Promise.all([datacenters.idsBySlug(), namespaceNames(game_id)]);
      for await (const page of store.selectWithin(queries, game_id, moments)) {
        const versions_of_page = await versionsOf(game_id, page);
        yield page.map((lobby) => toExportedLobby(lobby, { datacenter_ids, namespace_names, versions_of_page }));
      }
    },
    /** Stops a lobby of a game and removes its players. Returns false if no lobby with that id is running. */
    async remove({ game_id, lobby_id }: { game_id: string; lobby_id: string }): Promise<boolean> {
      const lobby = await selectLobby(queries, lobby_id);
      if (lobby?.game_id !== game_id || lobby.stop_ts) return false;
      return await stopping.stop(lobby, 'removed');
    },
    /**
     * Removes a player of a game's lobby, which frees the seat. Returns false if the player has none there. The player's
     * token is refused from now on, and the gateway closes the player's connection.
     */
    async kick(seat: playersStore.SeatToKick): Promise<boolean> {
      const player = await playersStore.selectPlayerOfGame(queries, seat);
      if (!player || player.remove_ts) return false;
      const how = { reason: 'kicked', now: clock.now() } as const;
      const is_player = playersStore.isAmong([player.player_id]);
      const { removed } = await playersStore.removePlayers(queries, player.namespace_id, is_player, how);
      if (removed > 0) onSeatsFreed();
      return removed > 0;
    },
  };
}

/** Returns the topics of a lobby and its players. A seat that is taken changes the list of the namespace's lobbies. */
function topicsOfPlayers({ lobby_id, namespace_id }: { lobby_id: string; namespace_id: string }): string[] {
  return [topics.lobby(lobby_id), topics.connectedIn(lobby_id), topics.lobbiesOf(namespace_id)];
}

/** Returns the players of a lobby who have a seat, and the latest who have left. */
export async function readVisits(
  queries: Queries,
  lobby: Pick<LobbyRow, 'lobby_id' | 'namespace_id'>,
): Promise<Visits> {
  // First those with a seat: a player who leaves in between is then in both lists, and not in none.
  const seated = await store.selectSeated(queries, lobby.lobby_id);
  const left = await store.selectLeft(queries, lobby, LEFT_MAX + 1);
  return { players: combineVisits(seated, left.slice(0, LEFT_MAX)), has_earlier: left.length > LEFT_MAX };
}

/**
 * Returns the players of both lists, once each, in the order of their seats. A player in both left between the two reads.
 */
export function combineVisits(seated: readonly PlayerRow[], left: readonly PlayerRow[]): PlayerRow[] {
  const left_ids = new Set(left.map(({ player_id }) => player_id));
  const players = [...left, ...seated.filter(({ player_id }) => !left_ids.has(player_id))];
  return players.sort(
    (one, other) => one.create_ts.getTime() - other.create_ts.getTime() || (one.player_id < other.player_id ? -1 : 1),
  );
}
