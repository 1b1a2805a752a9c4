import { index, integer, jsonb, pgTable, primaryKey, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';
import type { SeatRequestKind } from '../seat-request-kinds.ts';

const counts = {
  /** The highest numbers of players with a seat, and of lobbies. */
  players: integer().notNull(),
  lobbies: integer().notNull(),
  /** Requests that got a seat, or several for a party. */
  seated: jsonb().$type<Record<SeatRequestKind, number>>().notNull(),
  /** Refused requests by the code of their error. */
  refused: jsonb().$type<Record<string, number>>().notNull(),
  /** Finds that got a seat, counted by the bucket of their time. */
  find_times: jsonb().$type<Record<string, number>>().notNull(),
};

/** What happened in namespaces in each minute of the last day. A minute without anything has no row. */
export const minuteCounters = pgTable(
  'minute_counters',
  {
    namespace_id: uuid().notNull(),
    start_ts: moment().notNull(),
    /**
     * Identifies what one process counted, so that it is stored once; for players and lobbies, a fixed id, because one
     * process counts them for all.
     */
    counted_by: uuid().notNull(),
    ...counts,
  },
  (table) => [
    primaryKey({ columns: [table.namespace_id, table.start_ts, table.counted_by] }),
    index('minute_counters_by_age').on(table.start_ts),
  ],
);

/** The counts of each namespace by hour. They replace the counts by minute, which are deleted after a while. */
export const hourCounters = pgTable(
  'hour_counters',
  { namespace_id: uuid().notNull(), start_ts: moment().notNull(), ...counts },
  (table) => [
    primaryKey({ columns: [table.namespace_id, table.start_ts] }),
    index('hour_counters_by_age').on(table.start_ts),
  ],
);

export type MinuteCounterRow = typeof minuteCounters.$inferSelect;
export type HourCounterRow = typeof hourCounters.$inferSelect;
/** A row of either table. */
export type CounterRow = Omit<HourCounterRow, 'namespace_id'>;
/** What happened in a namespace within some time. */
export type Counts = Omit<CounterRow, 'start_ts'>;
