import { sql } from 'drizzle-orm';
import { type Database, LOCKS, type Queries, type Tx } from './database.ts';

/** The outcome of work that only one process does at a time. */
export type Turn<Result> = { is_taken: true } | { is_taken: false; result: Result };

/**
 * Runs work in a transaction under a lock, or does nothing if another transaction holds the lock (`is_taken`). For
 * background work that only one process should do at a time.
 */
export async function transactInTurn<Result>(
  { transact }: Pick<Database, 'transact'>,
  lock: number,
  work: (tx: Tx) => Promise<Result>,
): Promise<Turn<Result>> {
  return await transact(async (tx) => {
    const [row] = await tx.execute<{ is_ours: boolean }>(sql`select pg_try_advisory_xact_lock(${lock}) as is_ours`);
    return row?.is_ours ? { is_taken: false, result: await work(tx) } : { is_taken: true };
  });
}

/** Returns whether a backup is being made. What its snapshot of the database names must stay in the storage until its end. */
export async function isBackupRunning(queries: Queries): Promise<boolean> {
  const [row] = await queries.execute<{ is_free: boolean }>(
    sql`select pg_try_advisory_xact_lock_shared(${LOCKS.backup}) as is_free`,
  );
  return !row?.is_free;
}
