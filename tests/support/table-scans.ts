import { sql } from 'drizzle-orm';
import type { Queries } from '../../src/platform/database/database.ts';

/** Returns how often this connection has scanned a whole table. */
export async function countScans(queries: Queries, table: string): Promise<number> {
  // Counts of earlier statements appear in the next snapshot only.
  await queries.execute(sql`select pg_stat_force_next_flush()`);
  await queries.execute(sql`select pg_stat_clear_snapshot()`);
  const [row] = await queries.execute<{ scans: string }>(sql`
    select seq_scan::text as scans from pg_stat_user_tables where relname = ${table}`);
  return Number(row?.scans);
}
