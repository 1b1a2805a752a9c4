import type { Database } from '../../platform/database/database.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import type { Datacenters } from '../datacenters/datacenters.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import type { GameModeSettings, Versions } from '../versions/versions.ts';
import type { Listing, Statistics } from './listing-wire.ts';
import { toListedLobby, toRegion } from './listing-wire.ts';
import { listedLobbies } from './rules.ts';
import { requireNamespace } from './seating.ts';
import * as store from './views-store.ts';

export interface ListingDependencies {
  database: Database;
  namespaces: Namespaces;
  versions: Versions;
  datacenters: Datacenters;
}

/** What players may know of a namespace's lobbies (field-behaviour 4.10 and 4.11). */
export function createListing({ database, namespaces, versions, datacenters }: ListingDependencies) {
  return {
    /** The public lobbies of the current version; closed ones too, empty ones only where a game mode has no other. */
    async list(caller: CallerOf<'public'>, include_state: boolean): Promise<Listing> {
      const namespace = await requireNamespace(namespaces, caller.namespace_id);
      const [modes, regions, running] = await Promise.all([
        versions.gameModes(namespace),
        datacenters.list(),
        store.selectCounted(database.queries, namespace.namespace_id),
      ]);
      const listed = running.filter(
        ({ version_id, game_mode, publicity }) =>
          version_id === namespace.version_id && publicity !== 'private' && modes.get(game_mode)?.is_listable,
      );
      return {
        game_modes: [...modes.keys()].map((game_mode_id) => ({ game_mode_id })),
        regions: regions.map(toRegion),
        lobbies: listedLobbies(listed).map((lobby) => toListedLobby(lobby, include_state)),
      };
    },
    async regions(): Promise<Pick<Listing, 'regions'>> {
      return { regions: (await datacenters.list()).map(toRegion) };
    },
    /** Players with a seat. Each game mode and region of the current version is there, with a zero if need be. */
    async statistics(caller: CallerOf<'public'>, exclude_outdated: boolean): Promise<Statistics> {
      const namespace = await requireNamespace(namespaces, caller.namespace_id);
      const [modes, counts] = await Promise.all([
        versions.gameModes(namespace),
        store.selectPlayerCounts(database.queries, namespace.namespace_id),
      ]);
      const statistics = emptyStatistics(modes);
      for (const { version_id, game_mode, region, player_count } of counts) {
        if (exclude_outdated && version_id !== namespace.version_id) continue;
        statistics.player_count += player_count;
        statistics.game_modes[game_mode] ??= { player_count: 0, regions: {} };
        const mode = statistics.game_modes[game_mode];
        mode.player_count += player_count;
        mode.regions[region] = { player_count: (mode.regions[region]?.player_count ?? 0) + player_count };
      }
      return statistics;
    },
    /** The game modes as a development token sees them: a lobby of each. */
    async modesOf({ namespace_id }: { namespace_id: string }): Promise<GameModeSettings[]> {
      return [...(await versions.gameModes(await requireNamespace(namespaces, namespace_id))).values()];
    },
  };
}

function emptyStatistics(modes: ReadonlyMap<string, GameModeSettings>): Statistics {
  const zero = ({ regions }: GameModeSettings) =>
    Object.fromEntries([...regions.keys()].map((region) => [region, { player_count: 0 }]));
  const game_modes = [...modes].map(([name, mode]) => [name, { player_count: 0, regions: zero(mode) }]);
  return { player_count: 0, game_modes: Object.fromEntries(game_modes) };
}
