import type { Database } from '../../../platform/database/database.ts';
import type { Machines } from '../../machines/machines.ts';
import { selectOnMachines } from '../store.ts';

interface AvoidedLobbiesDependencies {
  database: Database;
  machines: Pick<Machines, 'avoided'>;
}

export type AvoidedLobbies = ReturnType<typeof createAvoidedLobbies>;

/**
 * Creates the list of lobbies in which finds get no seats, because their machine's heartbeat is overdue, its process was
 * stopped, or it is being drained. The list is read again while there is such a machine; otherwise it is empty and
 * costs nothing.
 */
export function createAvoidedLobbies({ database, machines }: AvoidedLobbiesDependencies) {
  let ids: ReadonlySet<string> = new Set();
  return {
    ids: () => ids,
    /** Reads the list again. */
    async refresh(): Promise<void> {
      const node_ids = [...machines.avoided()];
      const lobbies = node_ids.length > 0 ? await selectOnMachines(database.queries, node_ids) : [];
      ids = new Set(lobbies.map(({ lobby_id }) => lobby_id));
    },
  };
}
