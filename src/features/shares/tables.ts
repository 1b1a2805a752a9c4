import { index, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';
import { namespaces } from '../namespaces/tables.ts';

/** Links by which anyone can look at a namespace, or at one lobby of it. Revoking one deletes its row. */
export const shares = pgTable(
  'shares',
  {
    share_id: uuid().primaryKey(),
    game_id: uuid().notNull(),
    namespace_id: uuid()
      .notNull()
      .references(() => namespaces.namespace_id, { onDelete: 'cascade' }),
    /** The only lobby to see; null for the whole namespace. */
    lobby_id: uuid(),
    display_name: text().notNull(),
    create_ts: moment().notNull(),
    expire_ts: moment().notNull(),
  },
  (table) => [index('shares_of_namespaces').on(table.namespace_id), index('shares_by_age').on(table.expire_ts)],
);

export type ShareRow = typeof shares.$inferSelect;
