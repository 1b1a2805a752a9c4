import { bigint, boolean, pgTable, text } from 'drizzle-orm/pg-core';

/** How often each thing that can be watched has changed. A topic without a row has version 0. */
export const topics = pgTable('topics', {
  topic: text().primaryKey(),
  version: bigint({ mode: 'number' }).notNull(),
});

/** One row: the name of this database's life. After a reset of the data, indices of the old one mean nothing. */
export const epochs = pgTable('epochs', {
  is_only: boolean().primaryKey().default(true),
  epoch: text().notNull(),
});
