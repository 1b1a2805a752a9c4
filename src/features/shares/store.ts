import { and, count, desc, eq, gt, gte } from 'drizzle-orm';
import type { Database, Queries, Tx } from '../../platform/database/database.ts';
import { deleteOldRows } from '../../platform/database/old-rows.ts';
import { lockTopics, touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type ShareRow, shares } from './tables.ts';

const DELETED_AT_ONCE_MAX = 1_000;

/** The shares of a namespace whose tokens are accepted at a given time. */
export interface ValidShares {
  namespace_id: string;
  now: Date;
  /** When the tokens of the game were revoked, if ever. Shares from before keep their rows. */
  not_before: Date | undefined;
  shares_max: number;
}

function isValid({ namespace_id, now, not_before }: ValidShares) {
  const is_of = eq(shares.namespace_id, namespace_id);
  return and(is_of, gt(shares.expire_ts, now), not_before && gte(shares.create_ts, not_before));
}

/** Inserts a share unless the namespace has the maximum of valid ones. Returns whether it did. */
export async function insertShare(
  { transact }: Pick<Database, 'transact'>,
  row: ShareRow,
  valid: ValidShares,
): Promise<boolean> {
  return await transact(async (tx) => {
    // Concurrent requests of one namespace count one after another.
    await lockTopics(tx, [topics.sharesOf(row.namespace_id)]);
    if ((await countValid(tx, valid)) >= valid.shares_max) return false;
    await tx.insert(shares).values(row);
    return true;
  });
}

async function countValid(tx: Tx, valid: ValidShares): Promise<number> {
  const [row] = await tx.select({ valid: count() }).from(shares).where(isValid(valid));
  return row?.valid ?? 0;
}

export async function selectShare(queries: Queries, share_id: string): Promise<ShareRow | undefined> {
  const [row] = await queries.select().from(shares).where(eq(shares.share_id, share_id));
  return row;
}

/** Returns valid shares, newest first. */
export async function selectShares(queries: Queries, valid: ValidShares): Promise<ShareRow[]> {
  return await queries
    .select()
    .from(shares)
    .where(isValid(valid))
    .orderBy(desc(shares.create_ts), desc(shares.share_id))
    .limit(valid.shares_max);
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
