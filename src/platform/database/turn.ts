import { sql } from 'drizzle-orm';
import { type Database, LOCKS, type Queries, type Tx } from './database.ts';

/**
 * Runs work in a transaction under a lock. Returns undefined without running it if another transaction holds the lock. For
 * background work that only one process should do at a time.
 */
export async function transactInTurn<Result>(
  { transact }: Pick<Database, 'transact'>,
  lock: number,
  work: (tx: Tx) => Promise<Result>,
): Promise<Result | undefined> {
  return await transact(async (tx) => {
    const [row] = await tx.execute<{ is_ours: boolean }>(sql`select pg_try_advisory_xact_lock(${lock}) as is_ours`);
    return row?.is_ours ? await work(tx) : undefined;
  });
}

/** Returns whether a backup is being made. What its snapshot of the database names must stay in the storage until its end. */
export async function isBackupRunning(queries: Queries): Promise<boolean> {
  const [row] = await queries.execute<{ is_free: boolean }>(
    sql`select pg_try_advisory_xact_lock_shared(${LOCKS.backup}) as is_free`,
  );
  return !row?.is_free;
}
