import type { Database } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { Groups } from '../groups/groups.ts';
import * as store from './store.ts';

/** How often each process compares the counts. A change wakes the watchers of the game. */
const EVERY_MS = 5_000;

interface PlayerCountsDependencies {
  database: Database;
  events: Events;
  groups: Pick<Groups, 'lockMembers'>;
  /** Returns how many players have a seat, by game; games without any may be missing. */
  countPlayers(): Promise<ReadonlyMap<string, number>>;
}

/**
 * Starts the loop that updates `total_player_count`, a column of games. Seats do not update it themselves, because all
 * seats of a game would wait for its row.
 */
export function startPlayerCounts(dependencies: PlayerCountsDependencies, signal: AbortSignal): Loop {
  const { database, events, groups, countPlayers } = dependencies;

  async function update(developer_group_id: string, counts: ReadonlyMap<string, number>): Promise<void> {
    await database.transact(async (tx) => {
      const member_ids = await groups.lockMembers(tx, developer_group_id);
      // Another process may have updated the counts meanwhile.
      const miscounted = await store.selectMiscounted(tx, counts, developer_group_id);
      if (miscounted.length > 0) await store.updatePlayerCounts(tx, miscounted, member_ids);
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
