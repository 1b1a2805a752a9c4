import type { Database } from '../../platform/database/database.ts';
import { readSnapshot } from '../../platform/database/snapshot.ts';
import { toRow } from '../../platform/watch/rows.ts';
import { readVersions } from '../../platform/watch/versions.ts';
import type { WatchableRows } from '../../platform/watch/views.ts';
import { topics } from '../topics.ts';
import { countByStatus, selectWindow, type Window } from './rows-store.ts';
import { toListedServer } from './rows-wire.ts';

/** Creates the list of an environment's servers, of which a watcher sees a window. Watchable. */
export function createServerRows({
  database,
}: {
  database: Database;
}): WatchableRows<Window & { namespace_id: string }> {
  return {
    topics: ({ namespace_id }) => [topics.serversOf(namespace_id)],
    async read({ namespace_id, ...window }) {
      return await readSnapshot(database, async (tx) => {
        const versions = await readVersions(tx, [topics.serversOf(namespace_id)]);
        const summary = await countByStatus(tx, namespace_id);
        const listed = await selectWindow(tx, namespace_id, window);
        const rows = listed.map((server) => toRow(server.server_id, toListedServer(server)));
        return { versions, head: { row_id: 'server_id', summary }, rows };
      });
    },
  };
}
