import { sql } from 'drizzle-orm';
import type { Database, Tx } from './database.ts';

/**
 * Does work in a transaction, unless another transaction on the database is at work under the same lock: then it does
 * nothing and returns undefined. For background work that one process at a time should do.
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
