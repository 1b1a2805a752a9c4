import { timestamp } from 'drizzle-orm/pg-core';

/** A column for a moment, in milliseconds, read as a Date. */
export const moment = () => timestamp({ withTimezone: true, precision: 3, mode: 'date' });
