import { after, type Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import type { Watchable } from '../../../platform/watch/views.ts';
import { topics } from '../../topics.ts';
import type { ServerScope } from '../store.ts';
import { type CrashGroup, selectCrashes } from './crashes-store.ts';

const COUNTED_FOR_MS = 60 * 60_000;

interface CrashesDependencies {
  database: Database;
  clock: Clock;
}

/** Creates the view of the servers of an environment that crashed within the last hour. Watchable. */
export function createCrashes({ database, clock }: CrashesDependencies): Watchable<ServerScope, CrashGroup[]> {
  return {
    // The counters of a namespace with lobbies change each minute. Then the list is read again, without the crashes
    // older than an hour. Without lobbies, it is read again only when a server changes.
    topics: ({ namespace_id }) => [topics.serversOf(namespace_id), topics.countersOf(namespace_id)],
    read: (scope) => selectCrashes(database.queries, scope, after(clock.now(), -COUNTED_FOR_MS)),
  };
}
