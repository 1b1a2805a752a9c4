import { type SQL, sql } from 'drizzle-orm';

/** Returns a moment as a typed value for SQL, because the driver would guess its type from the statement. */
export function timestamptz(moment: Date): SQL {
  return sql`${moment.toISOString()}::timestamptz`;
}

/** The end of the year 9999. Date writes later years in a form that PostgreSQL does not read. */
const LATEST_MS = 253_402_300_799_999;

/** Returns the moment of a Unix time in milliseconds, limited to what the database can hold. */
export function toMoment(milliseconds: number): Date {
  return new Date(Math.min(Math.max(milliseconds, 0), LATEST_MS));
}
