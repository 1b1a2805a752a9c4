import { sql } from 'drizzle-orm';
import { boolean, index, integer, jsonb, pgTable, primaryKey, text, unique, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';
import { games } from '../games/tables.ts';
import type { VersionConfig } from './config.ts';

/** Versions: configurations of how a game is hosted. A version never changes, so a rollback is safe. */
export const versions = pgTable(
  'versions',
  {
    version_id: uuid().primaryKey(),
    game_id: uuid()
      .notNull()
      .references(() => games.game_id),
    display_name: text().notNull(),
    config: jsonb().$type<VersionConfig>().notNull(),
    /** Whether any game mode keeps warm lobbies. */
    keeps_warm: boolean().notNull().default(false),
    create_ts: moment().notNull(),
  },
  (table) => [
    unique('versions_display_name').on(table.game_id, table.display_name),
    index('versions_kept_warm').on(table.version_id).where(sql`keeps_warm`),
  ],
);

/** The greatest reserved number for names of versions, by day. */
export const versionNumbers = pgTable(
  'version_numbers',
  {
    game_id: uuid()
      .notNull()
      .references(() => games.game_id),
    /** The day as in the name: 2030.12.31. */
    day: text().notNull(),
    number: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.game_id, table.day] })],
);

export type VersionRow = typeof versions.$inferSelect;
