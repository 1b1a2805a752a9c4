import { sql } from 'drizzle-orm';
import { type Database, LOCKS, type Queries, type Tx } from './database.ts';

/** The outcome of work that is skipped while another process does it. */
export type LockedWork<Result> = { is_locked: true } | { is_locked: false; result: Result };

/**
 * Runs work in a transaction under a lock, or does nothing if another transaction holds the lock (`is_locked`). For
 * background work that only one process should do at a time.
 */
export async function transactUnlessLocked<Result>(
  { transact }: Pick<Database, 'transact'>,
  lock: number,
  work: (tx: Tx) => Promise<Result>,
): Promise<LockedWork<Result>> {
  return await transact(async (tx) => {
    const [row] = await tx.execute<{ is_ours: boolean }>(sql`select pg_try_advisory_xact_lock(${lock}) as is_ours`);
    return row?.is_ours ? { is_locked: false, result: await work(tx) } : { is_locked: true };
  });
}

/**
 * Returns whether a backup or a restore runs. What the snapshot of a backup names must stay in the storage until its
 * end.
 */
export async function isBackupRunning(queries: Queries): Promise<boolean> {
  const [row] = await queries.execute<{ is_free: boolean }>(
    sql`select pg_try_advisory_xact_lock_shared(${LOCKS.backup}) as is_free`,
  );
  return !row?.is_free;
}
