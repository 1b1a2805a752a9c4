import { and, asc, eq, isNotNull, isNull, type SQL, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../../platform/database/database.ts';
import { timestamptz } from '../../../platform/database/moments.ts';
import {
  PLACED_COLUMNS,
  type PlacedServer,
  type Room,
  type ServerPort,
  type ServerRow,
  serverPorts,
  servers,
  type WaitReason,
} from '../tables.ts';

const NAMESPACES_MAX = 10_000;

/** Twice the longest pause before a restart, for clocks that differ a little. */
const PAUSE_MS_MAX = 120_000;

/**
 * Returns a condition: a server has no pause before its start, or the pause is over. A pause that would last longer
 * than `PAUSE_MS_MAX` counts as over, because the clock was set back.
 */
function isDue(start_after: SQL, now: Date): SQL {
  const latest = new Date(now.getTime() + PAUSE_MS_MAX);
  return sql`coalesce(${start_after} <= ${timestamptz(now)} or ${start_after} > ${timestamptz(latest)}, true)`;
}

/** Where and when servers wait for a machine. */
interface WaitingQuery {
  datacenter_id: string;
  now: Date;
}

/** Selects a namespace's servers that wait for a machine of a datacenter, the oldest first, by index `servers_waiting`. */
const queueOf = ({ datacenter_id, now }: WaitingQuery, namespace_id: SQL, condition = sql``) => sql`
  from ${servers} as waiter
  where waiter.datacenter_id = ${datacenter_id} and waiter.namespace_id = ${namespace_id}
    and waiter.node_id is null and waiter.destroyed_at is null and ${isDue(sql`waiter.start_after`, now)} ${condition}
  order by waiter.created_at`;

/** A machine: what it has left for servers, the ports that ranges may take, and the protocols whose ports need two numbers. */
export interface RoomFilter {
  node_id: string;
  room: Room;
  range_ports: { min: number; max: number };
  /** Maximum of these ports in the ranges of one server. */
  range_ports_max: number;
  relayed: ReadonlySet<ServerPort['protocol']>;
}

const RANGE_MIN = sql`(of_waiter.port #>> '{port_range,min}')::int`;
const RANGE_MAX = sql`(of_waiter.port #>> '{port_range,max}')::int`;

/**
 * Returns a condition, to append: a machine has room for the waiting server. The ports count as `countPorts` and
 * `rangePortsOf` count them, and no other server has a port of its ranges.
 */
const fits = ({ node_id, room, range_ports: { min, max }, range_ports_max, relayed }: RoomFilter) => sql`
  and waiter.cpu <= ${room.cpu}::float8 and waiter.memory <= ${room.memory}::float8
  and ${room.ports}::int >= (
    select count(*) + count(*) filter (
      where port ->> 'routing' = 'game_guard' and port ->> 'protocol' = any(${sql.param([...relayed])}::text[])
    )
    from jsonb_each(waiter.ports) as of_waiter (label, port) where not port ? 'port_range'
  )
  and ${range_ports_max}::int >= (
    select coalesce(sum(greatest(least(${RANGE_MAX}, ${max}::int) - greatest(${RANGE_MIN}, ${min}::int) + 1, 0)), 0)
    from jsonb_each(waiter.ports) as of_waiter (label, port) where port ? 'port_range'
  )
  and not exists (
    select from jsonb_each(waiter.ports) as of_waiter (label, port)
    join ${serverPorts} as assigned
      on assigned.port between greatest(${RANGE_MIN}, ${min}::int) and least(${RANGE_MAX}, ${max}::int)
    where of_waiter.port ? 'port_range' and assigned.node_id = ${node_id} and assigned.release_ts is null
  )`;

const NEEDS = sql`json_build_object('ports', waiter.ports, 'cpu', waiter.cpu, 'memory', waiter.memory)`;
type Needs = Pick<ServerRow, 'ports' | 'cpu' | 'memory'>;

/** A namespace with servers that wait for a machine of a datacenter. */
export interface WaitingRow {
  namespace_id: string;
  game_id: string;
  /** The server that has waited longest. */
  server_id: string;
  build_id: string;
  since: Date;
  wait_reason: WaitReason | null;
  /** What it needs. */
  first: Needs;
  /** What the oldest server that fits needs; null if none fits. */
  next: Needs | null;
  /** How many waiting servers fit, counted up to a limit. */
  waiting: number;
}

/** Returns the namespaces with waiting servers. Steps through the index by namespace, however many servers each has. */
export async function selectWaitingNamespaces(
  queries: Queries,
  queue: WaitingQuery,
  { counted_max, ...filter }: RoomFilter & { counted_max: number },
): Promise<WaitingRow[]> {
  const nextAfter = (condition: SQL) => sql`
    select namespace_id, game_id from ${servers}
    where datacenter_id = ${queue.datacenter_id} and node_id is null and destroyed_at is null
      and ${isDue(sql`start_after`, queue.now)} ${condition}
    order by namespace_id limit 1`;
  const rows = await queries.execute<Omit<WaitingRow, 'since'> & { since_ms: number }>(sql`
    with recursive queue as (
      (${nextAfter(sql``)})
      union all
      select following.* from queue
      cross join lateral (${nextAfter(sql`and namespace_id > queue.namespace_id`)}) as following
    )
    select queue.namespace_id, queue.game_id, counted.waiting, counted.needs -> 0 as next,
      first.server_id, first.build_id, first.wait_reason, first.needs as first,
      (extract(epoch from first.created_at) * 1000)::float8 as since_ms
    from queue
    cross join lateral (
      select server_id, build_id, created_at, wait_reason, ${NEEDS} as needs ${queueOf(queue, sql`queue.namespace_id`)} limit 1
    ) as first
    cross join lateral (
      select count(*)::int as waiting, json_agg(queued.needs order by queued.created_at) as needs
      from (
        select created_at, ${NEEDS} as needs ${queueOf(queue, sql`queue.namespace_id`, fits(filter))} limit ${counted_max}
      ) as queued
    ) as counted
    limit ${NAMESPACES_MAX}`);
  return rows.map(({ since_ms, ...row }) => ({ ...row, since: new Date(since_ms) }));
}

/** What waits for a machine of a datacenter. */
export interface Waiting {
  is_any_due: boolean;
  /** When the next pause before a restart is over; undefined if there is none. */
  next_start: Date | undefined;
}

/** Returns whether a server of a datacenter is due to be taken, and when the next pause before a restart is over. */
export async function readWaiting(queries: Queries, { datacenter_id, now }: WaitingQuery): Promise<Waiting> {
  const is_waiting = sql`datacenter_id = ${datacenter_id} and node_id is null and destroyed_at is null`;
  const [row] = await queries.execute<{ is_any_due: boolean; next_start_ms: number | null }>(sql`
    select
      exists (select from ${servers} where ${is_waiting} and ${isDue(sql`start_after`, now)}) as is_any_due,
      (
        select (extract(epoch from start_after) * 1000)::float8 from ${servers}
        where ${is_waiting} and start_after > ${timestamptz(now)} order by start_after limit 1
      ) as next_start_ms`);
  const { is_any_due = false, next_start_ms = null } = row ?? {};
  return { is_any_due, next_start: next_start_ms === null ? undefined : new Date(next_start_ms) };
}

/** Returns servers of a datacenter that are ending and that no machine has taken. */
export async function selectEndingUnplaced(queries: Queries, datacenter_id: string, limit: number): Promise<string[]> {
  const rows = await queries
    .select({ server_id: servers.server_id })
    .from(servers)
    .where(
      and(
        eq(servers.datacenter_id, datacenter_id),
        isNull(servers.node_id),
        isNull(servers.ended_at),
        isNotNull(servers.destroyed_at),
      ),
    )
    .orderBy(asc(servers.destroyed_at))
    .limit(limit);
  return rows.map(({ server_id }) => server_id);
}

/** Returns whether a datacenter has servers that are ending and that no machine has taken. */
export async function isAnyEndingUnplaced(queries: Queries, datacenter_id: string): Promise<boolean> {
  return (await selectEndingUnplaced(queries, datacenter_id, 1)).length > 0;
}

/**
 * Locks the given number of servers of each namespace: of those that would fit into the room of the machine alone, the
 * ones that have waited longest. Skips those locked by others.
 */
export async function lockWaiting(
  tx: Tx,
  queue: WaitingQuery,
  { counts, ...filter }: RoomFilter & { counts: ReadonlyMap<string, number> },
): Promise<string[]> {
  const rows = await tx.execute<{ server_id: string }>(sql`
    select locked.server_id
    from unnest(${sql.param([...counts.keys()])}::uuid[], ${sql.param([...counts.values()])}::int[]) as turn (namespace_id, count)
    cross join lateral (
      select waiter.server_id ${queueOf(queue, sql`turn.namespace_id`, fits(filter))}
      limit turn.count for update of waiter skip locked
    ) as locked`);
  return rows.map(({ server_id }) => server_id);
}

/** Locks those of the servers that no machine has taken, the oldest first. Skips those locked by others. */
export async function lockUnplaced(tx: Tx, server_ids: string[]): Promise<PlacedServer[]> {
  return await tx
    .select(PLACED_COLUMNS)
    .from(servers)
    .where(
      and(
        sql`${servers.server_id} = any(${sql.param(server_ids)}::uuid[])`,
        isNull(servers.node_id),
        isNull(servers.ended_at),
      ),
    )
    .orderBy(asc(servers.created_at))
    .for('update', { skipLocked: true });
}

/** Records why servers wait. Returns those that had another reason, or none, before. */
export async function setWaitReasons(queries: Queries, reasons: ReadonlyMap<string, WaitReason>): Promise<string[]> {
  const rows = await queries.execute<{ server_id: string }>(sql`
    update ${servers} as waiter set wait_reason = changed.reason
    from unnest(${sql.param([...reasons.keys()])}::uuid[], ${sql.param([...reasons.values()])}::text[]) as changed (server_id, reason)
    where waiter.server_id = changed.server_id and waiter.node_id is null and waiter.destroyed_at is null
      and waiter.wait_reason is distinct from changed.reason
    returning waiter.server_id`);
  return rows.map(({ server_id }) => server_id);
}

/** Returns why a server waits for a machine. The reason is in the row of the oldest waiting server of its namespace. */
export async function selectWaitReason(
  queries: Queries,
  server_id: string,
  now: Date,
): Promise<WaitReason | undefined> {
  const [row] = await queries.execute<{ wait_reason: WaitReason | null }>(sql`
    select first.wait_reason from ${servers} as own
    cross join lateral (
      select waiter.wait_reason from ${servers} as waiter
      where waiter.datacenter_id = own.datacenter_id and waiter.namespace_id = own.namespace_id
        and waiter.node_id is null and waiter.destroyed_at is null and ${isDue(sql`waiter.start_after`, now)}
      order by waiter.created_at limit 1
    ) as first
    where own.server_id = ${server_id} and own.node_id is null and own.destroyed_at is null`);
  return row?.wait_reason ?? undefined;
}
