import { sql } from 'drizzle-orm';
import type { Queries } from '../../../src/platform/database/database.ts';

/** Returns how often this connection has scanned a whole table. */
export async function countScans(queries: Queries, table: string): Promise<number> {
  return (await readCounts(queries, table)).scans;
}

/** Returns how many rows of a table this connection has read. */
export async function countReadRows(queries: Queries, table: string): Promise<number> {
  return (await readCounts(queries, table)).rows;
}

async function readCounts(queries: Queries, table: string): Promise<{ scans: number; rows: number }> {
  // Counts of earlier statements appear in the next snapshot only.
  await queries.execute(sql`select pg_stat_force_next_flush()`);
  await queries.execute(sql`select pg_stat_clear_snapshot()`);
  const [row] = await queries.execute<{ scans: number; rows: number }>(sql`
    select seq_scan::int as scans, (seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_user_tables
    where relname = ${table}`);
  return row ?? { scans: Number.NaN, rows: Number.NaN };
}
