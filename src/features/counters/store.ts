import { and, asc, eq, gte, lt, type SQLWrapper, sql } from 'drizzle-orm';
import type { Database, Queries, Tx } from '../../platform/database/database.ts';
import { deleteOldRows } from '../../platform/database/old-rows.ts';
import { touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type CounterRow, type HourCounterRow, hourCounters, type MinuteCounterRow, minuteCounters } from './tables.ts';

const ROWS_AT_ONCE_MAX = 1_000;

/** Inserts rows of minutes, and wakes the watchers of their namespaces. A repeated row changes nothing. */
export async function insertMinutes({ transact }: Pick<Database, 'transact'>, rows: MinuteCounterRow[]): Promise<void> {
  for (let first = 0; first < rows.length; first += ROWS_AT_ONCE_MAX) {
    const batch = rows.slice(first, first + ROWS_AT_ONCE_MAX);
    await transact(async (tx) => {
      await touch(tx, [...new Set(batch.map(({ namespace_id }) => topics.countersOf(namespace_id)))]);
      // The text of the statement does not depend on the number of rows.
      await tx.execute(sql`
        insert into ${minuteCounters} select * from jsonb_populate_recordset(null::${minuteCounters}, ${JSON.stringify(batch)}::jsonb)
        on conflict do nothing`);
    });
  }
}

/**
 * Returns what a namespace counted from a moment on, oldest first, without the process. Needs no limit: minutes are kept for
 * about a day, and each has a row for every process that counted, and one for all.
 */
export async function selectMinutes(queries: Queries, namespace_id: string, from: Date): Promise<CounterRow[]> {
  const { start_ts, players, lobbies, seated, refused, find_times } = minuteCounters;
  return await queries
    .select({ start_ts, players, lobbies, seated, refused, find_times })
    .from(minuteCounters)
    .where(and(eq(minuteCounters.namespace_id, namespace_id), gte(start_ts, from)))
    .orderBy(asc(start_ts));
}

/** Returns what a namespace counted from a moment on, oldest first. Needs no limit: the hours of a week are kept. */
export async function selectHours(queries: Queries, namespace_id: string, from: Date): Promise<CounterRow[]> {
  const { start_ts, players, lobbies, seated, refused, find_times } = hourCounters;
  return await queries
    .select({ start_ts, players, lobbies, seated, refused, find_times })
    .from(hourCounters)
    .where(and(eq(hourCounters.namespace_id, namespace_id), gte(start_ts, from)))
    .orderBy(asc(start_ts));
}

/** What all namespaces counted in a minute. */
export interface CountedMinuteOfAll {
  start_ts: Date;
  players: number;
  lobbies: number;
  seated: number;
  refused: number;
}

/** Returns what all namespaces counted from a moment on, oldest first: a row for each minute, of about a day at most. */
export async function selectMinutesOfAll(queries: Queries, from: Date): Promise<CountedMinuteOfAll[]> {
  const { start_ts, players, lobbies, seated, refused } = minuteCounters;
  const sumOf = (counts: SQLWrapper) =>
    sql<number>`sum((select coalesce(sum(value::int), 0) from jsonb_each_text(${counts})))::int`;
  return await queries
    .select({
      start_ts,
      players: sql<number>`sum(${players})::int`,
      lobbies: sql<number>`sum(${lobbies})::int`,
      seated: sumOf(seated),
      refused: sumOf(refused),
    })
    .from(minuteCounters)
    .where(gte(start_ts, from))
    .groupBy(start_ts)
    .orderBy(asc(start_ts));
}

/** Deletes a batch of minutes before a moment, and returns them. */
export async function takeMinutesBefore(tx: Tx, moment: Date): Promise<MinuteCounterRow[]> {
  const old = sql`array(
    select ctid from ${minuteCounters} where ${lt(minuteCounters.start_ts, moment)}
    order by start_ts limit ${ROWS_AT_ONCE_MAX}
  )`;
  return await tx.delete(minuteCounters).where(sql`ctid = any(${old})`).returning();
}

/** Returns the stored hours of these namespaces and starts, in any combination. */
export async function selectSameHours(
  tx: Tx,
  hours: Pick<HourCounterRow, 'namespace_id' | 'start_ts'>[],
): Promise<HourCounterRow[]> {
  const distinct = (values: string[]) => sql.param([...new Set(values)]);
  const namespace_ids = distinct(hours.map(({ namespace_id }) => namespace_id));
  const starts = distinct(hours.map(({ start_ts }) => start_ts.toISOString()));
  return await tx
    .select()
    .from(hourCounters)
    .where(
      and(
        sql`${hourCounters.namespace_id} = any(${namespace_ids}::uuid[])`,
        sql`${hourCounters.start_ts} = any(${starts}::text[]::timestamptz[])`,
      ),
    );
}

export async function upsertHours(tx: Tx, rows: HourCounterRow[]): Promise<void> {
  await tx.execute(sql`
    insert into ${hourCounters} select * from jsonb_populate_recordset(null::${hourCounters}, ${JSON.stringify(rows)}::jsonb)
    on conflict (namespace_id, start_ts) do update set
      players = excluded.players, lobbies = excluded.lobbies, seated = excluded.seated, refused = excluded.refused,
      find_times = excluded.find_times`);
}

/** Deletes a batch of hours before a moment. Returns how many; more may remain. */
export async function deleteHoursBefore(tx: Tx, moment: Date): Promise<number> {
  return await deleteOldRows(tx, hourCounters.start_ts, { before: moment, limit: ROWS_AT_ONCE_MAX });
}
