import { sql } from 'drizzle-orm';
import type { Database, Tx } from './database.ts';

/** Runs reads that all see the database as it is at one moment. */
export async function readSnapshot<Result>(
  { transact }: Pick<Database, 'transact'>,
  read: (tx: Tx) => Promise<Result>,
): Promise<Result> {
  return await transact(async (tx) => {
    await tx.execute(sql`set transaction isolation level repeatable read read only`);
    return await read(tx);
  });
}
