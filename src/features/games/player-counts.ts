import type { Database } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { Groups } from '../groups/groups.ts';
import * as store from './store.ts';

/** Those who watch a game are woken by its players as often at most. */
const EVERY_MS = 5_000;

interface PlayerCountsDependencies {
  database: Database;
  events: Events;
  groups: Pick<Groups, 'lockMembers'>;
  /** Returns how many players have a seat, by game; games without any may be missing. */
  countPlayers(): Promise<ReadonlyMap<string, number>>;
}

/**
 * Keeps `total_player_count` of games. It is a column that is brought up to date now and then, so that no seat waits for
 * its game's row, and each count that is shown has an index of its own.
 */
export function startPlayerCounts(dependencies: PlayerCountsDependencies, signal: AbortSignal): Loop {
  const { database, events, groups, countPlayers } = dependencies;

  async function update(developer_group_id: string, counts: ReadonlyMap<string, number>): Promise<void> {
    await database.transact(async (tx) => {
      const watchers = await groups.lockMembers(tx, developer_group_id);
      // Another process may have done it meanwhile.
      const miscounted = await store.selectMiscounted(tx, counts, developer_group_id);
      if (miscounted.length > 0) await store.updatePlayerCounts(tx, miscounted, watchers);
    });
  }

  return startLoop({
    name: 'player-counts',
    every_ms: EVERY_MS,
    signal,
    events,
    async step() {
      const counts = await countPlayers();
      const miscounted = await store.selectMiscounted(database.queries, counts);
      for (const group_id of new Set(miscounted.map((game) => game.developer_group_id))) await update(group_id, counts);
      return 0;
    },
  });
}
