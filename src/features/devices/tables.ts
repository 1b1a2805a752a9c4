import { index, pgTable, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';
import { games } from '../games/tables.ts';

/** Completed device links. A link that is not complete exists only as its token. */
export const deviceLinks = pgTable(
  'device_links',
  {
    device_link_id: uuid().primaryKey(),
    game_id: uuid()
      .notNull()
      .references(() => games.game_id),
    complete_ts: moment().notNull(),
  },
  (table) => [index('device_links_by_age').on(table.complete_ts)],
);

export type DeviceLinkRow = typeof deviceLinks.$inferSelect;
