import { bigint, boolean, pgTable, text } from 'drizzle-orm/pg-core';

/** Topics and their versions, which count changes. A topic without a row has version 0. */
export const topics = pgTable('topics', {
  topic: text().primaryKey(),
  version: bigint({ mode: 'number' }).notNull(),
});

/**
 * One row: a random name of this database. A backup leaves it out, so a restored database gets a new one, which
 * invalidates the old indexes.
 */
export const epochs = pgTable('epochs', {
  is_only: boolean().primaryKey().default(true),
  epoch: text().notNull(),
});
