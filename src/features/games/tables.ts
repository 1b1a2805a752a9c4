import { index, integer, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';
import { groups } from '../groups/tables.ts';

/** Games. Everything hosted belongs to a game, and a game to its developer group. */
export const games = pgTable(
  'games',
  {
    game_id: uuid().primaryKey(),
    name_id: text().notNull().unique('games_name_id'),
    display_name: text().notNull(),
    developer_group_id: uuid()
      .notNull()
      .references(() => groups.group_id),
    /** The uploads with the game's pictures. */
    logo_upload_id: uuid(),
    banner_upload_id: uuid(),
    /** Cloud and service tokens and share links of the game issued before this moment are refused. */
    tokens_not_before: moment(),
    /** Players who had a seat when they were last counted. */
    player_count: integer().notNull().default(0),
    create_ts: moment().notNull(),
  },
  (table) => [index('games_by_group').on(table.developer_group_id)],
);

export type GameRow = typeof games.$inferSelect;
