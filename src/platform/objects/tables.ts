import { boolean, pgTable, text, uuid } from 'drizzle-orm/pg-core';

/** One row: the mark of the storage that has the uploaded files of this database, and its latest location. */
export const objectStorage = pgTable('object_storage', {
  is_only: boolean().primaryKey().default(true),
  mark: uuid().notNull(),
  location: text().notNull(),
});
