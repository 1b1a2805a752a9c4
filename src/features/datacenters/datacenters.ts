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

/** Stands in for the id of a datacenter that no longer exists. */
export const UNKNOWN_REGION = '00000000-0000-0000-0000-000000000000';

export interface DatacentersDependencies {
  database: Database;
  clock: Clock;
  feed: Feed;
}

/** Creates the use cases of datacenters: the places where game servers can run. */
export function createDatacenters({ database, clock, feed }: DatacentersDependencies) {
  const all = createWatchedCache<'all', DatacenterRow[]>({
    feed,
    topic: topics.datacenters,
    load: () => selectDatacenters(database.queries),
    entries_max: 1,
  });
  return {
    /** Registers or updates the datacenter of this process, from its settings. */
    register: ({ slug, name, coordinates }: { slug: string; name: string; coordinates: Coordinates | undefined }) => {
      const { latitude = null, longitude = null } = coordinates ?? {};
      const row = { datacenter_id: crypto.randomUUID(), slug, name, latitude, longitude, create_ts: clock.now() };
      return database.transact((tx) => upsertDatacenter(tx, row));
    },
    /** Returns all datacenters, ordered by slug. */
    list: () => all.get('all'),
    /** Returns the ids of all datacenters by slug. */
    async idsBySlug(): Promise<ReadonlyMap<string, string>> {
      return new Map((await all.get('all')).map(({ slug, datacenter_id }) => [slug, datacenter_id]));
    },
  };
}
