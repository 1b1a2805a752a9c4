import { sql } from 'drizzle-orm';
import type { Database, Tx } from './database.ts';

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
