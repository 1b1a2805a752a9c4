import { bigint, index, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';
import { games } from '../games/tables.ts';
import { uploads } from '../uploads/tables.ts';

/** Static sites of games, as uploaded. A version names the one that its namespaces show. */
export const sites = pgTable(
  'sites',
  {
    site_id: uuid().primaryKey(),
    game_id: uuid()
      .notNull()
      .references(() => games.game_id),
    upload_id: uuid()
      .notNull()
      .references(() => uploads.upload_id, { onDelete: 'cascade' }),
    display_name: text().notNull(),
    content_length: bigint({ mode: 'number' }).notNull(),
    create_ts: moment().notNull(),
    complete_ts: moment(),
  },
  (table) => [index('sites_by_game').on(table.game_id, table.create_ts), index('sites_by_upload').on(table.upload_id)],
);

export type SiteRow = typeof sites.$inferSelect;
