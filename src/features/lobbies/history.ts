import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Datacenters } from '../datacenters/datacenters.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import type { Servers } from '../servers/servers.ts';
import type { Ending } from './ending.ts';
import type { LiveLobby, PastLobbySummary } from './history-wire.ts';
import { toLiveLobby, toPastLobby } from './history-wire.ts';
import { selectLobby } from './store.ts';
import type { LobbyRow } from './tables.ts';
import * as store from './views-store.ts';

export interface HistoryDependencies {
  database: Database;
  namespaces: Namespaces;
  datacenters: Datacenters;
  servers: Servers;
}

interface Place {
  game_id: string;
  namespace_id: string;
}

/** What developers may know of their lobbies, running and ended (field-behaviour 8.3 and 8.8). */
export function createHistory({ database, namespaces, datacenters, servers }: HistoryDependencies, ending: Ending) {
  const { queries } = database;

  async function regionIds(): Promise<Map<string, string>> {
    return new Map((await datacenters.list()).map(({ slug, datacenter_id }) => [slug, datacenter_id]));
  }

  async function describe(lobbies: LobbyRow[]): Promise<PastLobbySummary[]> {
    const server_ids = lobbies.map(({ server_id }) => server_id);
    const [regions, outcomes] = await Promise.all([regionIds(), servers.outcomesOf(server_ids)]);
    return lobbies.map((lobby) => toPastLobby(lobby, outcomes.get(lobby.server_id), regions));
  }

  return {
    /** The running lobbies of a namespace. */
    async live(place: Place): Promise<LiveLobby[]> {
      const { namespace_id, version_id } = await namespaces.get(place);
      const [regions, running] = await Promise.all([regionIds(), store.selectCounted(queries, namespace_id)]);
      return running.map((lobby) => toLiveLobby(lobby, regions, version_id));
    },
    /** The newest 64 that were made before a moment. */
    async list(place: Place, before: Date | undefined): Promise<PastLobbySummary[]> {
      const { namespace_id } = await namespaces.get(place);
      return await describe(await store.selectHistory(queries, namespace_id, before));
    },
    /** Throws MATCHMAKER_LOBBY_NOT_FOUND. */
    async get(place: Place, lobby_id: string): Promise<PastLobbySummary> {
      const { namespace_id } = await namespaces.get(place);
      const lobby = await selectLobby(queries, lobby_id);
      const [described] = lobby?.namespace_id === namespace_id ? await describe([lobby]) : [];
      if (!described) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
      return described;
    },
    /** Ends a lobby of a game, whoever sits in it. False when there is none, or none that runs. */
    async remove({ game_id, lobby_id }: { game_id: string; lobby_id: string }): Promise<boolean> {
      const lobby = await selectLobby(queries, lobby_id);
      if (lobby?.game_id !== game_id || lobby.stop_ts) return false;
      return await ending.stop(lobby, 'removed');
    },
  };
}
