import { sql } from 'drizzle-orm';
import type { Tx } from '../../src/platform/database/database.ts';

/** Returns how many rows of a table some work updates, and how many of these updates write index entries. */
export async function countUpdates(tx: Tx, table: string, work: () => Promise<unknown>) {
  const count = async () => {
    const [counts] = await tx.execute<{ noted: number; updated: number }>(sql`
      select n_tup_upd::int - n_tup_hot_upd::int as noted, n_tup_upd::int as updated
      from pg_stat_xact_user_tables where relname = ${table}`);
    return counts ?? { noted: 0, updated: 0 };
  };
  const before = await count();
  await work();
  const { noted, updated } = await count();
  return { noted: noted - before.noted, updated: updated - before.updated };
}
