import { and, count, desc, eq, gt } from 'drizzle-orm';
import type { Database, Queries, Tx } from '../../platform/database/database.ts';
import { deleteOldRows } from '../../platform/database/old-rows.ts';
import { lockTopics, touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type ShareRow, shares } from './tables.ts';

const DELETED_AT_ONCE_MAX = 1_000;

/** Inserts a share unless the namespace has a number of shares that are valid at a given time. Returns whether it did. */
export async function insertShare(
  { transact }: Pick<Database, 'transact'>,
  row: ShareRow,
  { now, shares_max }: { now: Date; shares_max: number },
): Promise<boolean> {
  return await transact(async (tx) => {
    // Concurrent requests of one namespace count one after another.
    await lockTopics(tx, [topics.sharesOf(row.namespace_id)]);
    if ((await countValid(tx, row.namespace_id, now)) >= shares_max) return false;
    await tx.insert(shares).values(row);
    return true;
  });
}

async function countValid(tx: Tx, namespace_id: string, now: Date): Promise<number> {
  const [row] = await tx
    .select({ valid: count() })
    .from(shares)
    .where(and(eq(shares.namespace_id, namespace_id), gt(shares.expire_ts, now)));
  return row?.valid ?? 0;
}

export async function selectShare(queries: Queries, share_id: string): Promise<ShareRow | undefined> {
  const [row] = await queries.select().from(shares).where(eq(shares.share_id, share_id));
  return row;
}

/** Returns the shares of a namespace that are valid at a given time, newest first. */
export async function selectShares(
  queries: Queries,
  namespace_id: string,
  { now, shares_max }: { now: Date; shares_max: number },
): Promise<ShareRow[]> {
  return await queries
    .select()
    .from(shares)
    .where(and(eq(shares.namespace_id, namespace_id), gt(shares.expire_ts, now)))
    .orderBy(desc(shares.create_ts), desc(shares.share_id))
    .limit(shares_max);
}

/** Deletes a share of a namespace, and notifies the watches that use it. Returns false if there is none. */
export async function deleteShare(
  { transact }: Pick<Database, 'transact'>,
  namespace_id: string,
  share_id: string,
): Promise<boolean> {
  return await transact(async (tx) => {
    const deleted = await tx
      .delete(shares)
      .where(and(eq(shares.namespace_id, namespace_id), eq(shares.share_id, share_id)))
      .returning({ share_id: shares.share_id });
    if (deleted.length === 0) return false;
    // May come after the lock of the row, because no other transaction touches this topic.
    await touch(tx, [topics.share(share_id)]);
    return true;
  });
}

/** Deletes a batch of shares that expired before a given time. Returns how many; more may remain. */
export async function deleteSharesBefore(queries: Queries, moment: Date): Promise<number> {
  return await deleteOldRows(queries, shares.expire_ts, { before: moment, limit: DELETED_AT_ONCE_MAX });
}
