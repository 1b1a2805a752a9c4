import { asc, eq } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { assert } from '../../platform/errors.ts';
import { touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type DatacenterRow, datacenters } from './tables.ts';

const DATACENTERS_MAX = 1_000;

/** Inserts or updates the row of a slug. Notifies watchers only if the row changed. */
export async function upsertDatacenter(tx: Tx, row: DatacenterRow): Promise<DatacenterRow> {
  const { slug, name, latitude, longitude } = row;
  const [known] = await tx.select().from(datacenters).where(eq(datacenters.slug, slug));
  const is_same = known?.name === name && known.latitude === latitude && known.longitude === longitude;
  if (is_same) return known;
  await touch(tx, [topics.datacenters()]);
  const [kept] = await tx
    .insert(datacenters)
    .values(row)
    .onConflictDoUpdate({ target: datacenters.slug, set: { name, latitude, longitude } })
    .returning();
  assert(kept, 'an upsert returns its row');
  return kept;
}

/** Returns all datacenters, ordered by slug. */
export async function selectDatacenters(queries: Queries): Promise<DatacenterRow[]> {
  return await queries.select().from(datacenters).orderBy(asc(datacenters.slug)).limit(DATACENTERS_MAX);
}
