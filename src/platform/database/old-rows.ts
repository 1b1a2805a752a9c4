import { type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import type { Queries } from './database.ts';
import { timestamptz } from './moments.ts';

interface OldRows {
  /** The rows to delete have an earlier moment in the column. */
  before: Date;
  /** Maximum number of rows to delete. */
  limit: number;
}

/**
 * Deletes rows that have an earlier moment in the column than `before`, the oldest first, and at most `limit`. Returns how
 * many; more may remain. Skips rows that other transactions change at this moment. The column needs an index.
 */
export async function deleteOldRows(queries: Queries, column: PgColumn, { before, limit }: OldRows): Promise<number> {
  const { table } = column;
  const old: SQL = sql`
    select ctid from ${table} where ${column} < ${timestamptz(before)}
    order by ${column} limit ${limit} for update skip locked`;
  const rows = await queries.execute(sql`delete from ${table} where ctid = any(array(${old})) returning 1`);
  return rows.length;
}
