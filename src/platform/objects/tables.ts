import { boolean, pgTable, text, uuid } from 'drizzle-orm/pg-core';

/** One row: the storage that holds the uploaded files of this database, by its mark, and where it was last seen. */
export const objectStorage = pgTable('object_storage', {
  is_only: boolean().primaryKey().default(true),
  mark: uuid().notNull(),
  place: text().notNull(),
});
