import { boolean, integer, pgTable, text, timestamp, uuid } from 'drizzle-orm/pg-core';

/** People. A guest becomes registered when a login is linked to him. */
export const identities = pgTable('identities', {
  identity_id: uuid().primaryKey(),
  display_name: text().notNull(),
  /** Four digits that tell apart people of one display name. */
  account_number: integer().notNull(),
  bio: text().notNull().default(''),
  is_registered: boolean().notNull(),
  is_admin: boolean().notNull(),
  create_ts: timestamp({ withTimezone: true, precision: 3, mode: 'date' }).notNull(),
});

export type IdentityRow = typeof identities.$inferSelect;
