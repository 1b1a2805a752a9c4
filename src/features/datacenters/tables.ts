import { sql } from 'drizzle-orm';
import { check, doublePrecision, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';

/** Where machines are; players know them as regions. Each process registers its own when it starts. */
export const datacenters = pgTable(
  'datacenters',
  {
    datacenter_id: uuid().primaryKey(),
    slug: text().notNull().unique('datacenters_slug'),
    name: text().notNull(),
    /** In degrees. Null if not configured. */
    latitude: doublePrecision(),
    longitude: doublePrecision(),
    create_ts: moment().notNull(),
  },
  () => [check('datacenters_coordinates', sql`(latitude is null) = (longitude is null)`)],
);

export type DatacenterRow = typeof datacenters.$inferSelect;
