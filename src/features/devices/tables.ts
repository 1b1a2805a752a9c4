import { index, pgTable, timestamp, uuid } from 'drizzle-orm/pg-core';
import { games } from '../games/tables.ts';

/** Completed device links. A link that is not complete exists only as its token. */
export const deviceLinks = pgTable(
  'device_links',
  {
    device_link_id: uuid().primaryKey(),
    game_id: uuid()
      .notNull()
      .references(() => games.game_id),
    complete_ts: timestamp({ withTimezone: true, precision: 3, mode: 'date' }).notNull(),
  },
  (table) => [index('device_links_by_age').on(table.complete_ts)],
);

export type DeviceLinkRow = typeof deviceLinks.$inferSelect;
