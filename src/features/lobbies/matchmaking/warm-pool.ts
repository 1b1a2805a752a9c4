import { after, type Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { ServiceError } from '../../../platform/errors.ts';
import type { Events } from '../../../platform/events.ts';
import type { Datacenters } from '../../datacenters/datacenters.ts';
import type { Namespaces } from '../../namespaces/namespaces.ts';
import type { GameModeSettings, Versions } from '../../versions/versions.ts';
import { missingLobbies, type WantedShelf } from '../rules.ts';
import * as store from '../warm-store.ts';
import type { Founding } from './create-lobbies.ts';
import type { PlannedLobby } from './planner.ts';

/** How long a lobby that ended by itself keeps others from being made in its place; longer with each, to a minute. */
const FAILURES_COUNT_FOR_MS = 10 * 60_000;

export interface WarmingDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  namespaces: Namespaces;
  versions: Versions;
  datacenters: Datacenters;
  founding: Founding;
}

/** Keeps lobbies ready that nobody sits in yet, as many as a game mode wants in each region (idle_lobbies.min). */
export function createWarming(dependencies: WarmingDependencies) {
  const { database, clock, events, namespaces, versions, datacenters, founding } = dependencies;
  const { queries } = database;

  async function wantedShelves(): Promise<(WantedShelf & { mode: GameModeSettings; game_id: string })[]> {
    const version_ids = await versions.keptWarm();
    if (version_ids.length === 0) return [];
    const [warm, regions] = await Promise.all([namespaces.onVersions(version_ids), datacenters.list()]);
    const slugs = new Set(regions.map(({ slug }) => slug));
    const shelves = await Promise.all(
      warm.map(async ({ namespace_id, game_id, version_id }) => {
        const modes = await versions.gameModes({ game_id, version_id });
        return [...modes.values()].flatMap((mode) =>
          [...mode.regions]
            .filter(([region, { idle_lobbies }]) => idle_lobbies.min > 0 && slugs.has(region))
            .map(([region, { idle_lobbies }]) => {
              const shelf = { namespace_id, version_id, game_mode: mode.name, region };
              return { ...shelf, min: idle_lobbies.min, mode, game_id };
            }),
        );
      }),
    );
    return shelves.flat();
  }

  return {
    /** Makes the lobbies that are missing. Gives how many. */
    async keepWarm(): Promise<number> {
      const wanted = await wantedShelves();
      if (wanted.length === 0) return 0;
      const now = clock.now();
      const namespace_ids = [...new Set(wanted.map(({ namespace_id }) => namespace_id))];
      const [idle, failing] = await Promise.all([
        store.selectIdleCounts(queries, namespace_ids),
        store.selectFailing(queries, namespace_ids, after(now, -FAILURES_COUNT_FOR_MS)),
      ]);
      const planned = missingLobbies(wanted, idle, failing, now).flatMap(({ shelf, count }) =>
        Array.from({ length: count }, () => planOf(shelf)),
      );
      const founded = await founding.foundLobbies(planned);
      for (const one of founded) if ('error' in one) report(one.planned, one.error);
      return founded.filter((one) => 'lobby' in one).length;
    },
  };

  /** As many lobbies as are allowed is no failure; nor is that another machine made them just now. */
  function report({ namespace_id, lobby }: PlannedLobby, cause: unknown): void {
    if (cause instanceof ServiceError && cause.code === 'MATCHMAKER_TOO_MANY_LOBBIES') return;
    const { game_mode, region } = lobby;
    events.emit({ event: 'lobby_not_kept_warm', namespace_id, game_mode, region, cause });
  }
}

function planOf({
  namespace_id,
  game_id,
  version_id,
  region,
  min,
  mode,
}: WantedShelf & { mode: GameModeSettings; game_id: string }): PlannedLobby {
  const { name: game_mode, max_players_normal, max_players_direct, max_players_party } = mode;
  const maxima = { max_players_normal, max_players_direct, max_players_party };
  const lobby = { game_mode, region, tags: {}, ...maxima, publicity: null, lobby_config: undefined };
  return { namespace_id, game_id, version_id, lobby, founders: [], idle_min: min };
}
