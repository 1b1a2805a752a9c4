import { and, asc, type Column, desc, eq, inArray, isNotNull, isNull, lte, type SQL, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { timestamptz, toMoment } from '../../platform/database/moments.ts';
import { touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import {
  type Identity,
  PLACED_COLUMNS,
  type PlacedServer,
  type ServerProgram,
  type ServerRow,
  servers,
} from './tables.ts';

/** The scope of a query: an environment of a game. */
export interface ServerScope {
  game_id: string;
  namespace_id: string;
}

export interface ServerFilter {
  tags: Record<string, string>;
  include_destroyed: boolean;
  /** The id of the last server of the previous page. */
  cursor: string | undefined;
}

/** The ids that name the topics of a server. */
export type Named = Pick<ServerRow, 'server_id' | 'namespace_id'>;

/** The ids that name the topics of a server, and the topic of the work in its datacenter. */
type NamedInDatacenter = Pick<ServerRow, keyof Named | 'datacenter_id'>;

/** Returns the topics that a change of a server bumps. */
export const topicsOf = ({ server_id, namespace_id }: Named) => [
  topics.server(server_id),
  topics.serversOf(namespace_id),
];

const PAGE_MAX = 10_000;
const PAGE_WITH_DESTROYED_MAX = 64;
/** A row may have 330 KB. */
const PAGE_BYTES_MAX = 8 * 1_024 ** 2;
/** Rows that are read at one time. */
const BATCH_MAX = 64;

export async function insertServer(tx: Tx, row: ServerRow): Promise<void> {
  await touch(tx, [...topicsOf(row), topics.work(row.datacenter_id)]);
  await tx.insert(servers).values(row);
}

/**
 * Inserts a server unless `waiting_max` servers of its namespace without a lobby already wait in its datacenter.
 * Returns whether it did.
 */
export async function insertServerIfFewWait(tx: Tx, row: ServerRow, waiting_max: number): Promise<boolean> {
  const { namespace_id, datacenter_id } = row;
  await touch(tx, [...topicsOf(row), topics.work(datacenter_id)]);
  // No other transaction inserts a server of the namespace meanwhile, because each locks its topic first.
  const [counted] = await tx.execute<{ waiting: number }>(sql`
    select count(*)::int as waiting from (
      select from ${servers}
      where datacenter_id = ${datacenter_id} and namespace_id = ${namespace_id}
        and node_id is null and destroyed_at is null and token_caller is null
      limit ${waiting_max}
    ) as waiter`);
  if (counted === undefined || counted.waiting >= waiting_max) return false;
  await tx.insert(servers).values(row);
  return true;
}

export async function selectServer(
  queries: Queries,
  scope: ServerScope,
  server_id: string,
): Promise<ServerRow | undefined> {
  const [row] = await queries
    .select()
    .from(servers)
    .where(and(isWithin(scope), eq(servers.server_id, server_id)));
  return row;
}

export async function selectServerById(queries: Queries, server_id: string): Promise<ServerRow | undefined> {
  const [row] = await queries.select().from(servers).where(eq(servers.server_id, server_id));
  return row;
}

/**
 * Returns the game of a build that is in use: by a server that a machine has taken and that has not ended. Returns
 * undefined if it is not.
 */
export async function selectGameOfBuildInUse(queries: Queries, build_id: string): Promise<string | undefined> {
  const is_in_use = and(eq(servers.build_id, build_id), isNotNull(servers.node_id), isNull(servers.ended_at));
  const [row] = await queries.select({ game_id: servers.game_id }).from(servers).where(is_in_use).limit(1);
  return row?.game_id;
}

/** Returns whether a server exists, ended or not. */
export async function hasServer(queries: Queries, server_id: string): Promise<boolean> {
  const rows = await queries.select({}).from(servers).where(eq(servers.server_id, server_id));
  return rows.length > 0;
}

/** Returns when the server with an id was created, from the id alone; undefined for an id that is not of a server. */
function creationOf(server_id: string): Date | undefined {
  const [, milliseconds] = /^([0-9a-f]{12})7/i.exec(server_id.replaceAll('-', '')) ?? [];
  return milliseconds === undefined ? undefined : toMoment(Number.parseInt(milliseconds, 16));
}

/**
 * Returns a page of servers, newest first, after the cursor. A cursor may name a server that was removed; one that names no
 * server returns none. A page is limited by its count and by its bytes, and has at least one server if there is any.
 */
export async function selectServers(queries: Queries, scope: ServerScope, filter: ServerFilter): Promise<ServerRow[]> {
  const page: ServerRow[] = [];
  const count_max = filter.include_destroyed ? PAGE_WITH_DESTROYED_MAX : PAGE_MAX;
  let bytes_left = PAGE_BYTES_MAX;
  let { cursor } = filter;
  let rows_max = BATCH_MAX;
  while (page.length < count_max) {
    const batch_max = Math.min(rows_max, count_max - page.length);
    const batch = await selectBatch(queries, scope, { ...filter, cursor }, batch_max);
    for (const row of batch) {
      bytes_left -= Buffer.byteLength(JSON.stringify(row));
      if (bytes_left < 0 && page.length > 0) return page;
      page.push(row);
    }
    if (batch.length < batch_max) break;
    cursor = batch.at(-1)?.server_id;
    // The next batch may have four times as many rows, if these have left room for them.
    const row_bytes = (PAGE_BYTES_MAX - bytes_left) / page.length;
    rows_max = Math.max(BATCH_MAX, Math.min(4 * rows_max, Math.floor(bytes_left / (4 * row_bytes))));
  }
  return page;
}

async function selectBatch(
  queries: Queries,
  scope: ServerScope,
  filter: ServerFilter,
  count_max: number,
): Promise<ServerRow[]> {
  const { cursor = '' } = filter;
  const time_of_cursor = sql`select ${servers.created_at} from ${servers} where ${and(isWithin(scope), eq(servers.server_id, cursor))}`;
  const creation = creationOf(cursor);
  const created_at = sql`coalesce((${time_of_cursor}), ${creation ? timestamptz(creation) : sql`null::timestamptz`})`;
  return await queries
    .select()
    .from(servers)
    .where(
      and(
        isWithin(scope),
        sql`${servers.tags} @> ${JSON.stringify(filter.tags)}::jsonb`,
        // The second condition follows from the first, and lets the index of servers that have not ended be used.
        ...(filter.include_destroyed ? [] : [isNull(servers.destroyed_at), isNull(servers.ended_at)]),
        filter.cursor === undefined
          ? undefined
          : sql`(${servers.created_at}, ${servers.server_id}) < (${created_at}, ${cursor}::uuid)`,
      ),
    )
    .orderBy(desc(servers.created_at), desc(servers.server_id))
    .limit(count_max);
}

/** Returns a condition: the server in a column of another table has ended with its machine. */
export function hasLostMachine(server_id: Column): SQL {
  return sql`exists (
    select from ${servers} where ${servers.server_id} = ${server_id} and ${servers.has_lost_machine}
  )`;
}

/** Returns a condition: the server in a column of another table is on one of the machines, and has not ended. */
export function isOnMachine(server_id: Column, node_ids: readonly string[]): SQL {
  return sql`${server_id} in (
    select ${servers.server_id} from ${servers}
    where ${servers.node_id} = any(${sql.param(node_ids)}::uuid[]) and ${servers.ended_at} is null
  )`;
}

/** Returns an expression: the machine of the server in a column of another table. */
export function machineOf(server_id: Column): SQL {
  return sql`(
    select ${servers.node_id} from ${servers} where ${servers.server_id} = ${server_id}
  )`;
}

/** Returns the number of servers that have not ended, by machine. */
export async function countByMachine(queries: Queries): Promise<Map<string, number>> {
  const rows = await queries
    .select({ node_id: servers.node_id, count: sql<number>`count(*)::int` })
    .from(servers)
    .where(and(isNull(servers.ended_at), isNotNull(servers.node_id)))
    .groupBy(servers.node_id);
  return new Map(rows.map(({ node_id, count }) => [node_id ?? '', count]));
}

/** Returns a condition: the server in a column of another table is ending or has ended. */
export function isEnding(server_id: Column): SQL {
  return sql`exists (
    select from ${servers} where ${servers.server_id} = ${server_id} and ${servers.destroyed_at} is not null
  )`;
}

/**
 * Returns the builds of the servers that machines have taken and that have not ended, with the time at which the oldest of
 * these servers was created.
 */
export async function selectBuildsOn(queries: Queries, node_ids: string[]): Promise<Map<string, Date>> {
  const rows = await queries
    .select({
      build_id: servers.build_id,
      oldest: sql<Date>`min(${servers.created_at})`.mapWith(servers.created_at),
    })
    .from(servers)
    .where(and(inArray(servers.node_id, node_ids), isNull(servers.ended_at)))
    .groupBy(servers.build_id);
  return new Map(rows.map(({ build_id, oldest }) => [build_id, oldest]));
}

/** Returns the servers that a machine has taken and that have not ended. */
export async function selectOnMachine(queries: Queries, node_id: string): Promise<PlacedServer[]> {
  return await queries
    .select(PLACED_COLUMNS)
    .from(servers)
    .where(and(eq(servers.node_id, node_id), isNull(servers.ended_at)))
    .orderBy(asc(servers.created_at));
}

/** Whether and why the end of a server was requested. */
type EndRequest = Pick<ServerRow, 'destroyed_at' | 'kill_at' | 'failure'>;

/** Returns whether and why the ends of servers were requested, by server. */
export async function selectEndRequests(queries: Queries, server_ids: string[]): Promise<Map<string, EndRequest>> {
  const { server_id, destroyed_at, kill_at, failure } = servers;
  const rows = await queries
    .select({ server_id, destroyed_at, kill_at, failure })
    .from(servers)
    .where(sql`${server_id} = any(${sql.param(server_ids)}::uuid[])`);
  return new Map(rows.map((row) => [row.server_id, row]));
}

/** Returns what the start of a server needs; undefined if its row is gone. */
export async function selectProgram(queries: Queries, server_id: string): Promise<ServerProgram | undefined> {
  const { arguments: program_arguments, environment, service_environment } = servers;
  const [program] = await queries
    .select({ arguments: program_arguments, environment, service_environment })
    .from(servers)
    .where(eq(servers.server_id, server_id));
  return program;
}

/** Returns those of the servers that have not ended. */
export async function selectNotEnded(queries: Queries, server_ids: string[]): Promise<Set<string>> {
  if (server_ids.length === 0) return new Set();
  const rows = await queries
    .select({ server_id: servers.server_id })
    .from(servers)
    .where(and(sql`${servers.server_id} = any(${sql.param(server_ids)}::uuid[])`, isNull(servers.ended_at)));
  return new Set(rows.map(({ server_id }) => server_id));
}

export interface RunningOn {
  node_ids: string[];
  server_ids: string[];
  started_before: Date;
}

/** Returns which of the servers have run on these machines since before a given time, and are not ending. */
export async function selectRunningOn(
  queries: Queries,
  { node_ids, server_ids, started_before }: RunningOn,
): Promise<string[]> {
  const rows = await queries
    .select({ server_id: servers.server_id })
    .from(servers)
    .where(
      and(
        inArray(servers.node_id, node_ids),
        sql`${servers.server_id} = any(${sql.param(server_ids)}::uuid[])`,
        lte(servers.started_at, started_before),
        isNull(servers.destroyed_at),
      ),
    )
    .orderBy(asc(servers.created_at))
    .limit(server_ids.length);
  return rows.map(({ server_id }) => server_id);
}

/** Returns whether a machine has servers that have not ended. */
export async function isAnyOnMachine(queries: Queries, node_id: string): Promise<boolean> {
  const on_machine = and(eq(servers.node_id, node_id), isNull(servers.ended_at));
  return (await queries.select({ server_id: servers.server_id }).from(servers).where(on_machine).limit(1)).length > 0;
}

/** Assigns a server to a machine. */
export async function assignServer(
  tx: Tx,
  server_id: string,
  assignment: Pick<ServerRow, 'node_id' | 'ports'>,
): Promise<void> {
  await tx.update(servers).set(assignment).where(eq(servers.server_id, server_id));
}

/** Records that a server runs. Returns false if it has ended, because its machine was declared lost meanwhile. */
export async function setStarted(
  tx: Tx,
  { server_id, namespace_id }: Named,
  running: Pick<ServerRow, 'identity' | 'started_at' | 'ports'>,
): Promise<boolean> {
  await touch(tx, topicsOf({ server_id, namespace_id }));
  const rows = await tx.update(servers).set(running).where(isNotEnded(server_id)).returning(ID);
  return rows.length > 0;
}

/** Records a server that its runtime has accepted and that does not run yet. Returns false if it has ended. */
export async function setIdentity(queries: Queries, server_id: string, identity: Identity): Promise<boolean> {
  const rows = await queries.update(servers).set({ identity }).where(isNotEnded(server_id)).returning(ID);
  return rows.length > 0;
}

const ID = { server_id: servers.server_id };

const isNotEnded = (server_id: string) => and(eq(servers.server_id, server_id), isNull(servers.ended_at));

/** Records why a server failed: it cannot start, or did what it may not. It is then ended without a timeout. */
export async function setFailed(tx: Tx, server: NamedInDatacenter, failure: string, now: Date): Promise<void> {
  const { server_id, datacenter_id } = server;
  await touch(tx, [...topicsOf(server), topics.serversEnding(), topics.work(datacenter_id)]);
  await tx
    .update(servers)
    .set({ failure, destroyed_at: sql`coalesce(${servers.destroyed_at}, ${timestamptz(now)})` })
    .where(isNotEnded(server_id));
}

/** Returns a condition: a server is in an environment. */
export function isWithin({ game_id, namespace_id }: ServerScope) {
  return and(eq(servers.game_id, game_id), eq(servers.namespace_id, namespace_id));
}

const PRESENCE_MAX = 10_000;

/** A server for which the gateway reports players, with where it can be reached. */
export type ServerWithPresence = {
  server_id: string;
  node_id: string | null;
  port: number | null;
  host: string | null;
};

interface PresenceQuery {
  node_ids: string[];
  datacenter_id: string;
}

/**
 * Returns the servers with presence, for which the gateway reports players: those on some machines, and those that wait for
 * a machine of a datacenter, which come last. Each has a port, if it has any, and the host once it is known.
 */
export async function selectWithPresence(
  queries: Queries,
  { node_ids, datacenter_id }: PresenceQuery,
): Promise<ServerWithPresence[]> {
  return await queries.execute<ServerWithPresence>(sql`
    select server_id, node_id, min((port ->> 'public_port')::int) as port, min(port ->> 'public_hostname') as host
    from ${servers} cross join jsonb_each(ports) as of_server (label, port)
    where ended_at is null and port ->> 'presence' = 'gateway' and (
      node_id = any(${sql.param(node_ids)}::uuid[])
      or node_id is null and destroyed_at is null and datacenter_id = ${datacenter_id}::uuid
    )
    group by server_id order by node_id is null, server_id limit ${PRESENCE_MAX}`);
}

/** Returns where a server of any environment can be reached, and how it ended. */
export async function selectReach(queries: Queries, server_id: string) {
  const { game_id, namespace_id, node_id, ports, started_at, ended_at } = servers;
  const { exit_code, exit_signal, failure, has_lost_machine } = servers;
  const [row] = await queries
    .select({
      game_id,
      namespace_id,
      node_id,
      ports,
      started_at,
      ended_at,
      exit_code,
      exit_signal,
      failure,
      has_lost_machine,
    })
    .from(servers)
    .where(eq(servers.server_id, server_id));
  return row;
}

/** Returns when servers were started and how they ended. */
export async function selectOutcomes(queries: Queries, server_ids: string[]) {
  return await queries
    .select({
      server_id: servers.server_id,
      started_at: servers.started_at,
      exit_code: servers.exit_code,
      exit_signal: servers.exit_signal,
      failure: servers.failure,
      has_lost_machine: servers.has_lost_machine,
    })
    .from(servers)
    .where(sql`${servers.server_id} = any(${sql.param(server_ids)}::uuid[])`);
}
