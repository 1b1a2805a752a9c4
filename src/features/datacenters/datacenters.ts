import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { createWatchedCache } from '../../platform/watch/cache.ts';
import type { Feed } from '../../platform/watch/feed.ts';
import type { Coordinates } from '../coordinates.ts';
import { topics } from '../topics.ts';
import { selectDatacenters, upsertDatacenter } from './store.ts';
import type { DatacenterRow } from './tables.ts';

export type Datacenters = ReturnType<typeof createDatacenters>;
export type Datacenter = DatacenterRow;

/** What stands for the id of a datacenter that is not there any more. */
export const UNKNOWN_REGION = '00000000-0000-0000-0000-000000000000';

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
    /** Makes the datacenter of this process known, as this process was told of it. */
    register: ({ slug, name, coordinates }: { slug: string; name: string; coordinates: Coordinates | undefined }) => {
      const { latitude = null, longitude = null } = coordinates ?? {};
      const row = { datacenter_id: crypto.randomUUID(), slug, name, latitude, longitude, create_ts: clock.now() };
      return database.transact((tx) => upsertDatacenter(tx, row));
    },
    /** All there are, in the order of their slugs. */
    list: () => all.get('all'),
    /** Their ids, by slug. */
    async idsBySlug(): Promise<ReadonlyMap<string, string>> {
      return new Map((await all.get('all')).map(({ slug, datacenter_id }) => [slug, datacenter_id]));
    },
  };
}
