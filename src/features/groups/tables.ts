import { index, pgTable, primaryKey, text, timestamp, uuid } from 'drizzle-orm/pg-core';
import { identities } from '../identities/tables.ts';

/** Teams of people. A game belongs to one: its developer group. */
export const groups = pgTable('groups', {
  group_id: uuid().primaryKey(),
  display_name: text().notNull(),
  bio: text().notNull().default(''),
  publicity: text({ enum: ['open', 'closed'] })
    .notNull()
    .default('open'),
  owner_identity_id: uuid()
    .notNull()
    .references(() => identities.identity_id),
  create_ts: timestamp({ withTimezone: true, precision: 3, mode: 'date' }).notNull(),
});

export const groupMembers = pgTable(
  'group_members',
  {
    group_id: uuid()
      .notNull()
      .references(() => groups.group_id),
    identity_id: uuid()
      .notNull()
      .references(() => identities.identity_id),
    join_ts: timestamp({ withTimezone: true, precision: 3, mode: 'date' }).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.group_id, table.identity_id] }),
    index('group_members_by_identity').on(table.identity_id),
  ],
);

export type GroupRow = typeof groups.$inferSelect;

/** A group with the number of its members. */
export interface CountedGroup extends GroupRow {
  member_count: number;
}
