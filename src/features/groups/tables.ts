import { sql } from 'drizzle-orm';
import { index, integer, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';
import { identities } from '../identities/tables.ts';

/** Teams of people. A game belongs to one of them, its developer group. */
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
  create_ts: moment().notNull(),
  /** The upload with the group's picture. */
  avatar_upload_id: uuid(),
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
    join_ts: moment().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.group_id, table.identity_id] }),
    index('group_members_by_identity').on(table.identity_id),
  ],
);

/** Codes that make people members. */
export const groupInvites = pgTable(
  'group_invites',
  {
    code: text().primaryKey(),
    group_id: uuid()
      .notNull()
      .references(() => groups.group_id),
    create_ts: moment().notNull(),
    /** Null if it does not expire. */
    expire_ts: moment(),
    /** Null if unlimited. */
    uses_left: integer(),
  },
  (table) => [
    index('group_invites_by_group').on(table.group_id),
    index('group_invites_by_expiry').on(table.expire_ts).where(sql`expire_ts is not null`),
    index('group_invites_used_up').on(table.create_ts).where(sql`uses_left = 0`),
  ],
);

/** People who asked to join. */
export const groupJoinRequests = pgTable(
  'group_join_requests',
  {
    group_id: uuid()
      .notNull()
      .references(() => groups.group_id),
    identity_id: uuid()
      .notNull()
      .references(() => identities.identity_id),
    ts: moment().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.group_id, table.identity_id] }),
    index('group_join_requests_by_identity').on(table.identity_id),
    index('group_join_requests_by_age').on(table.ts),
  ],
);

/** Banned people. */
export const groupBans = pgTable(
  'group_bans',
  {
    group_id: uuid()
      .notNull()
      .references(() => groups.group_id),
    identity_id: uuid()
      .notNull()
      .references(() => identities.identity_id),
    ts: moment().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.group_id, table.identity_id] }),
    index('group_bans_by_identity').on(table.identity_id),
  ],
);

export type InviteRow = typeof groupInvites.$inferSelect;
export type GroupRow = typeof groups.$inferSelect;

/** A group with the number of its members. */
export interface CountedGroup extends GroupRow {
  member_count: number;
}
