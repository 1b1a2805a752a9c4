import { sql } from 'drizzle-orm';
import { index, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';
import type { ChangeDetails } from '../../platform/http/call.ts';

/**
 * How a change ended. `begun`: its end was not recorded, because it is under way or the service stopped, so it may have
 * happened. `failed`: the service was at fault, so it may have happened in part.
 */
export const OUTCOMES = ['begun', 'done', 'failed'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** Who changed what, when and from where. */
export const auditEntries = pgTable(
  'audit_entries',
  {
    /** The ray id of the request, or a new id of the same form. It begins with the time, so entries are ordered by it. */
    entry_id: uuid().primaryKey(),
    create_ts: moment().notNull(),
    operation: text().notNull(),
    caller_kind: text().$type<'identity' | 'cloud' | 'service' | 'other_game'>().notNull(),
    /** The identity, the game of a cloud token, or the environment of a service token; zeros for another game. */
    caller_id: uuid().notNull(),
    /** When the token was issued; null for identities. */
    token_issued_ts: moment(),
    address: text().notNull(),
    user_agent: text(),
    // Not foreign keys: entries remain when what they are about is deleted.
    game_id: uuid(),
    namespace_id: uuid(),
    group_id: uuid(),
    details: jsonb().$type<ChangeDetails>().notNull(),
    outcome: text().$type<Outcome>().notNull(),
    /** The code of the error of a failed change. */
    code: text(),
  },
  (table) => [
    index('audit_entries_of_games').on(table.game_id, table.entry_id).where(sql`game_id is not null`),
    index('audit_entries_of_groups').on(table.group_id, table.entry_id).where(sql`group_id is not null`),
    index('audit_entries_by_age').on(table.create_ts),
  ],
);

export type AuditEntryRow = typeof auditEntries.$inferSelect;
