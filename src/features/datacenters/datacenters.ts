import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { createWatchedCache } from '../../platform/watch/cache.ts';
import type { Feed } from '../../platform/watch/feed.ts';
import { topics } from '../topics.ts';
import { selectDatacenters, upsertDatacenter } from './store.ts';
import type { DatacenterRow } from './tables.ts';

export type Datacenters = ReturnType<typeof createDatacenters>;
export type Datacenter = DatacenterRow;

interface DatacentersDependencies {
  database: Database;
  clock: Clock;
  feed: Feed;
}

/** Where game servers can run. */
export function createDatacenters({ database, clock, feed }: DatacentersDependencies) {
  const all = createWatchedCache<'all', DatacenterRow[]>({
    feed,
    topic: topics.datacenters,
    load: () => selectDatacenters(database.queries),
    entries_max: 1,
  });
  return {
    /** Makes the datacenter of this process known. */
    register: ({ slug, name }: { slug: string; name: string }) =>
      database.transact((tx) =>
        upsertDatacenter(tx, { datacenter_id: crypto.randomUUID(), slug, name, create_ts: clock.now() }),
      ),
    /** All there are, in the order of their slugs. */
    list: () => all.get('all'),
  };
}
