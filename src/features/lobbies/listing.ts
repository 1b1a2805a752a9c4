import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import { createSharedReads } from '../../platform/watch/shared-reads.ts';
import type { Watchable } from '../../platform/watch/views.ts';
import type { Coordinates } from '../coordinates.ts';
import type { Datacenters } from '../datacenters/datacenters.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import { topics } from '../topics.ts';
import type { GameModeSettings, Versions } from '../versions/versions.ts';
import * as store from './listing-store.ts';
import {
  type Listing,
  type LobbyById,
  type Regions,
  type Statistics,
  toListedLobby,
  toLobbyById,
  toRegion,
} from './listing-wire.ts';
import { requireNamespace } from './matchmaking/current-version.ts';
import { lobbyStopped } from './refusals.ts';
import { listedLobbies } from './rules.ts';

export interface ListingDependencies {
  database: Database;
  namespaces: Namespaces;
  versions: Versions;
  datacenters: Datacenters;
}

interface ListKey {
  namespace_id: string;
  include_state: boolean;
  /** The rounded position of the client, because the list has the distances of regions. */
  coordinates: Coordinates | undefined;
}

/** The part of a list that does not depend on the position of the client. */
type ListedLobbies = Pick<Listing, 'game_modes' | 'lobbies'>;

/** Creates the views that players have of a namespace's lobbies. */
export function createListing({ database, namespaces, versions, datacenters }: ListingDependencies) {
  const { queries } = database;
  const readOnce = createSharedReads<ListedLobbies>();

  async function readListed(namespace_id: string, include_state: boolean): Promise<ListedLobbies> {
    const namespace = await requireNamespace(namespaces, namespace_id);
    const [modes, running] = await Promise.all([
      versions.gameModes(namespace),
      store.selectCounted(queries, namespace_id),
    ]);
    const listed = listedLobbies(
      running.filter(
        ({ version_id, game_mode, publicity }) =>
          version_id === namespace.version_id && publicity !== 'private' && modes.get(game_mode)?.is_listable,
      ),
    );
    const with_state = include_state ? listed.map(({ lobby_id }) => lobby_id) : [];
    const states = await store.selectStates(queries, with_state);
    return {
      game_modes: [...modes.keys()].map((game_mode_id) => ({ game_mode_id })),
      lobbies: listed.map((lobby) => toListedLobby(lobby, states.get(lobby.lobby_id))),
    };
  }

  /**
   * The public lobbies of the current version. Shows closed ones, and an empty one only if no lobby of its mode has players.
   * Watchable.
   */
  const list: Watchable<ListKey, Listing> = {
    topics: ({ namespace_id }) => [
      topics.lobbiesOf(namespace_id),
      topics.playersOf(namespace_id),
      topics.namespace(namespace_id),
      topics.datacenters(),
    ],
    async read({ namespace_id, include_state, coordinates }) {
      const [{ game_modes, lobbies }, regions] = await Promise.all([
        // All positions of clients share a read, because only the regions depend on the position.
        readOnce(`${namespace_id} ${include_state}`, () => readListed(namespace_id, include_state)),
        datacenters.list(),
      ]);
      return { game_modes, regions: regions.map((region) => toRegion(region, coordinates)), lobbies };
    },
  };

  /** A running lobby of a namespace, even a private one, because a player who knows its id may join it. Watchable. */
  const lobby: Watchable<{ namespace_id: string; lobby_id: string }, LobbyById> = {
    topics: ({ lobby_id }) => [topics.lobby(lobby_id), topics.connectedIn(lobby_id)],
    async read(key) {
      const [view] = await readLobbies([key]);
      if (!view || view instanceof Error) throw view ?? new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
      return view;
    },
    readMany: readLobbies,
  };

  async function readLobbies(
    keys: { namespace_id: string; lobby_id: string }[],
  ): Promise<(LobbyById | ServiceError)[]> {
    const rows = await store.selectVisible(
      queries,
      keys.map(({ lobby_id }) => lobby_id),
    );
    const by_id = new Map(rows.map((row) => [row.lobby_id, row]));
    return keys.map(({ namespace_id, lobby_id }) => {
      const row = by_id.get(lobby_id);
      if (row?.namespace_id !== namespace_id) return new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
      return row.is_stopped ? lobbyStopped() : toLobbyById(row);
    });
  }

  /** Players with a seat, for each game mode and region of the current version, even if there are none. Watchable. */
  const statistics: Watchable<{ namespace_id: string; exclude_outdated: boolean }, Statistics> = {
    topics: ({ namespace_id }) => [topics.lobbiesOf(namespace_id), topics.namespace(namespace_id)],
    async read({ namespace_id, exclude_outdated }) {
      const namespace = await requireNamespace(namespaces, namespace_id);
      const [modes, counts] = await Promise.all([
        versions.gameModes(namespace),
        store.selectPlayerCounts(queries, namespace_id),
      ]);
      const by_mode = new Map(
        [...modes].map(([name, { regions }]) => [name, new Map([...regions.keys()].map((region) => [region, 0]))]),
      );
      for (const { version_id, game_mode, region, player_count } of counts) {
        if (exclude_outdated && version_id !== namespace.version_id) continue;
        const regions = by_mode.get(game_mode) ?? new Map<string, number>();
        by_mode.set(game_mode, regions.set(region, (regions.get(region) ?? 0) + player_count));
      }
      return toStatistics(by_mode);
    },
  };

  return {
    list,
    lobby,
    statistics,
    /** Returns the regions, with their distances from the client if its position is known. */
    async regions(coordinates: Coordinates | undefined): Promise<Regions> {
      return { regions: (await datacenters.list()).map((region) => toRegion(region, coordinates)) };
    },
    /** Returns the game modes of a namespace. */
    async modesOf({ namespace_id }: { namespace_id: string }): Promise<GameModeSettings[]> {
      return [...(await versions.gameModes(await requireNamespace(namespaces, namespace_id))).values()];
    },
  };
}

/** Builds the statistics from the number of players by game mode and region. */
function toStatistics(by_mode: Map<string, Map<string, number>>): Statistics {
  const sum = (counts: Iterable<number>) => [...counts].reduce((all, count) => all + count, 0);
  const game_modes = [...by_mode].map(([name, regions]) => {
    const counts = [...regions].map(([region, player_count]) => [region, { player_count }]);
    return [name, { player_count: sum(regions.values()), regions: Object.fromEntries(counts) }];
  });
  const player_count = sum([...by_mode.values()].flatMap((regions) => [...regions.values()]));
  return { player_count, game_modes: Object.fromEntries(game_modes) };
}
