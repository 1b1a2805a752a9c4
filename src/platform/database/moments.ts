import { type SQL, sql } from 'drizzle-orm';

/** A moment as a value in SQL of our own: the driver would guess its type from the statement. */
export function at(moment: Date): SQL {
  return sql`${moment.toISOString()}::timestamptz`;
}
