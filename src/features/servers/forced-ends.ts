import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { toServiceError } from '../../platform/database/failures.ts';
import { handleOf } from './rules.ts';
import type { Runtime } from './runtimes/runtime.ts';
import * as store from './store.ts';
import type { PlacedServer } from './tables.ts';

export interface ForcedEndDependencies {
  database: Database;
  clock: Clock;
  runtime: Pick<Runtime, 'kill' | 'remove'>;
  /** Why servers were ended, until that is recorded. */
  unrecorded_failures: Map<string, string>;
}

/**
 * Creates the function that ends a server of this machine by recording that it failed. If the database cannot record that,
 * perhaps because this server has filled its disk, kills the server at once.
 */
export function createForcedEnds({ database, clock, runtime, unrecorded_failures }: ForcedEndDependencies) {
  return async (server: PlacedServer, failure: string): Promise<void> => {
    try {
      await database.transact((tx) => store.setFailed(tx, server, failure, clock.now()));
    } catch (cause) {
      const code = toServiceError(cause)?.code;
      if (code !== 'STORAGE_FULL' && code !== 'DATABASE_UNAVAILABLE') throw cause;
      unrecorded_failures.set(server.server_id, failure);
      const gone = await runtime.kill([handleOf(server)]);
      // The database has no room for its output either.
      if (code === 'STORAGE_FULL' && gone.has(server.server_id)) await runtime.remove(server.server_id);
    }
  };
}
