import { type SQL, sql } from 'drizzle-orm';

/** A moment as a value in SQL of our own: the driver would guess its type from the statement. */
export function timestamptz(moment: Date): SQL {
  return sql`${moment.toISOString()}::timestamptz`;
}

/** From 1970 to the end of the year 9999: what Date writes and PostgreSQL reads in the same way. */
const LATEST_MS = 253_402_300_799_999;

/** The moment of a number of milliseconds since 1970, or the next one that the database knows. */
export function toMoment(milliseconds: number): Date {
  return new Date(Math.min(Math.max(milliseconds, 0), LATEST_MS));
}
