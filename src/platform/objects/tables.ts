import { boolean, pgTable, text, uuid } from 'drizzle-orm/pg-core';

/** One row: the mark of the storage that has the uploaded files of this database, and its latest location. */
export const objectStorage = pgTable('object_storage', {
  is_only: boolean().primaryKey().default(true),
  mark: uuid().notNull(),
  /** The column has its earlier name, as an earlier release may run beside this one during an upgrade. */
  location: text('place').notNull(),
});
