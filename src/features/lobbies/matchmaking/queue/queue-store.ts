import { and, asc, desc, eq, type SQL, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../../../platform/database/database.ts';
import { isAnyOf } from '../../../../platform/database/lists.ts';
import { timestamptz } from '../../../../platform/database/moments.ts';
import { assert } from '../../../../platform/errors.ts';
import { bump, touch } from '../../../../platform/watch/versions.ts';
import { topics } from '../../../topics.ts';
import { type QueuedFind, type QueuedFindRow, queuedFinds } from '../../tables.ts';

/** Maximum number of waiting finds of a namespace. */
export const QUEUE_MAX = 1_000;
const NAMESPACES_MAX = 1_000;

/** A find that is to enter the queue, with the limit of its client. */
export type NewQueuedFind = Omit<QueuedFindRow, 'place' | 'lease_ts'> & { players_max: number; lease_ms: number };

/** The outcome of entering the queue. */
export type EnterOutcome = 'waits' | 'queue_full' | 'too_many_of_client';

/** Returns the queue of a namespace, in order. */
export async function selectQueue(queries: Queries, namespace_id: string): Promise<QueuedFind[]> {
  const { ticket, place, seats, version_id, game_modes, regions, tags } = queuedFinds;
  return await queries
    .select({ ticket, place, seats, version_id, game_modes, regions, tags })
    .from(queuedFinds)
    .where(eq(queuedFinds.namespace_id, namespace_id))
    .orderBy(asc(queuedFinds.place))
    .limit(QUEUE_MAX);
}

/** Leases end by the clock of the database, because each process removes the finds of all others whose leases have ended. */
const endOfLease = (lease_ms: number): SQL => sql`clock_timestamp() + ${lease_ms}::integer * interval '1 ms'`;

/** Returns the time of the database. */
export async function readClock(queries: Queries): Promise<Date> {
  const [row] = await queries.execute<{ now_ms: number }>(
    sql`select (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms`,
  );
  assert(row, 'a select without a table returns a row');
  return new Date(row.now_ms);
}

/** Adds a find at the end of its namespace's queue, if there is room. Fails if its ticket is in the queue. */
export async function insertQueued(tx: Tx, { players_max, lease_ms, ...row }: NewQueuedFind): Promise<EnterOutcome> {
  const { namespace_id, client, seats } = row;
  // The bump serializes arrivals, so that each sees the earlier ones and gets a higher place.
  await touch(tx, [topics.queueOf(namespace_id)]);
  const [totals] = await tx.execute<{ all: number; seats: number }>(sql`
    select count(*)::int as all, (coalesce(sum(seats) filter (where client = ${client}), 0))::int as seats
    from ${queuedFinds} where namespace_id = ${namespace_id}::uuid`);
  if ((totals?.all ?? 0) >= QUEUE_MAX) return 'queue_full';
  if ((totals?.seats ?? 0) + seats > players_max) return 'too_many_of_client';
  await tx.insert(queuedFinds).values({ ...row, lease_ts: endOfLease(lease_ms) });
  return 'waits';
}

/** Updates the search of a find after its namespace moved to another version. */
export async function updateQueued(
  tx: Tx,
  { namespace_id, ticket }: Pick<QueuedFindRow, 'namespace_id' | 'ticket'>,
  search: Pick<QueuedFindRow, 'version_id' | 'game_modes' | 'regions' | 'tags'>,
): Promise<void> {
  await touch(tx, [topics.queueOf(namespace_id)]);
  await tx
    .update(queuedFinds)
    .set(search)
    .where(and(eq(queuedFinds.namespace_id, namespace_id), eq(queuedFinds.ticket, ticket)));
}

/** Removes a process's find, if it entered the queue at the given time. */
export async function deleteQueued(
  queries: Queries,
  { namespace_id, ticket, owner, enter_ts }: Pick<QueuedFindRow, 'namespace_id' | 'ticket' | 'owner' | 'enter_ts'>,
): Promise<void> {
  await queries.execute(sql`
    with ${bump([topics.queueOf(namespace_id)])}
    delete from ${queuedFinds}
    where namespace_id = ${namespace_id}::uuid and ticket = ${ticket}::uuid and owner = ${owner}::uuid
      and enter_ts = ${timestamptz(enter_ts)} and (select count(*) from bumped) > 0`);
}

/** A find in the queue. */
export type QueueKey = Pick<QueuedFindRow, 'namespace_id' | 'ticket'>;

/**
 * Renews the leases of the given finds. Returns all finds of the process that are in the queue, including those it gave
 * up but could not remove: their leases are left to end.
 */
export async function renewLeases(
  queries: Queries,
  { owner, finds, lease_ms }: { owner: string; finds: QueueKey[]; lease_ms: number },
): Promise<QueueKey[]> {
  const column = (key: keyof QueueKey) => sql.param(finds.map((find) => find[key]));
  const rows = await queries.execute<Record<keyof QueueKey, string>>(sql`
    with own as (
      -- Skips finds that are getting their seats, which need no lease.
      select namespace_id, ticket from ${queuedFinds}
      where owner = ${owner}::uuid and (namespace_id, ticket) in (
        select * from unnest(${column('namespace_id')}::uuid[], ${column('ticket')}::uuid[])
      )
      order by place for update skip locked
    ), renewed as (
      update ${queuedFinds} set lease_ts = ${endOfLease(lease_ms)}
      from own where ${queuedFinds.namespace_id} = own.namespace_id and ${queuedFinds.ticket} = own.ticket
    )
    select namespace_id, ticket from ${queuedFinds} where owner = ${owner}::uuid`);
  return [...rows];
}

/** Returns the namespaces in which the lease of a find ended before a given time of the database. */
export async function selectNamespacesWithEndedLeases(queries: Queries, leases_ended_before: Date): Promise<string[]> {
  const rows = await queries.execute<{ namespace_id: string }>(sql`
    select distinct namespace_id from ${queuedFinds} where lease_ts <= ${timestamptz(leases_ended_before)}
    order by namespace_id limit ${NAMESPACES_MAX}`);
  return rows.map(({ namespace_id }) => namespace_id);
}

/** Removes those finds of a namespace whose leases ended before a given time of the database. Returns how many. */
export async function deleteWithEndedLeases(
  queries: Queries,
  namespace_id: string,
  leases_ended_before: Date,
): Promise<number> {
  const rows = await queries.execute(sql`
    with ${bump([topics.queueOf(namespace_id)])}
    delete from ${queuedFinds}
    where namespace_id = ${namespace_id}::uuid and lease_ts <= ${timestamptz(leases_ended_before)}
      and (select count(*) from bumped) > 0
    returning ticket`);
  return rows.length;
}

/** The finds that wait in a namespace, the seats that they want, and since when the first of them waits. */
export interface QueueLength {
  namespace_id: string;
  finds: number;
  seats: number;
  waiting_since_ts: Date;
}

/** Returns the lengths of all queues. */
export async function selectLengths(queries: Queries): Promise<QueueLength[]> {
  const { namespace_id, seats, enter_ts } = queuedFinds;
  return await queries
    .select({
      namespace_id,
      finds: sql<number>`count(*)::int`,
      seats: sql<number>`sum(${seats})::int`,
      waiting_since_ts: sql<Date>`min(${enter_ts})`.mapWith(enter_ts),
    })
    .from(queuedFinds)
    .groupBy(namespace_id)
    .orderBy(desc(sql`count(*)`), asc(namespace_id))
    .limit(NAMESPACES_MAX);
}

/** The position of a find in the queue: 1 is next. */
export interface QueuePositionRow {
  namespace_id: string;
  ticket: string;
  position: number;
  length: number;
}

/** Returns the positions of finds. Finds that do not wait are missing. */
export async function selectQueuePositions(
  queries: Queries,
  keys: Pick<QueuePositionRow, 'namespace_id' | 'ticket'>[],
): Promise<QueuePositionRow[]> {
  const within = isAnyOf(queuedFinds.namespace_id, [...new Set(keys.map(({ namespace_id }) => namespace_id))]);
  const tickets = sql.param(keys.map(({ ticket }) => ticket));
  const rows = await queries.execute<Record<keyof QueuePositionRow, string>>(sql`
    select * from (
      select namespace_id, ticket,
        row_number() over (partition by namespace_id order by place) as position,
        count(*) over (partition by namespace_id) as length
      from ${queuedFinds} where ${within}
    ) as positions where ticket = any(${tickets}::uuid[])`);
  return rows.map(({ namespace_id, ticket, position, length }) => {
    return { namespace_id, ticket, position: Number(position), length: Number(length) };
  });
}
