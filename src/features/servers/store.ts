import { and, asc, type Column, desc, eq, isNotNull, isNull, lte, or, type SQL, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { timestamptz } from '../../platform/database/moments.ts';
import type { ProcessIdentity } from '../../platform/processes.ts';
import { bump, touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type ServerRow, serverPorts, servers } from './tables.ts';

/** The environment a server is looked for in. */
export interface ServerScope {
  game_id: string;
  namespace_id: string;
}

export interface ServerFilter {
  tags: Record<string, string>;
  include_destroyed: boolean;
  /** The id of the last server of the page before. */
  cursor: string | undefined;
}

type Named = Pick<ServerRow, 'server_id' | 'namespace_id'>;

/** Where a change of a server is told. */
const about = ({ server_id, namespace_id }: Named) => [topics.server(server_id), topics.serversOf(namespace_id)];

const PAGE = 10_000;
const PAGE_WITH_DESTROYED = 64;

export async function insertServer(tx: Tx, row: ServerRow): Promise<void> {
  await touch(tx, [...about(row), topics.work(row.datacenter_id)]);
  await tx.insert(servers).values(row);
}

export async function selectServer(
  queries: Queries,
  scope: ServerScope,
  server_id: string,
): Promise<ServerRow | undefined> {
  const [row] = await queries
    .select()
    .from(servers)
    .where(and(within(scope), eq(servers.server_id, server_id)));
  return row;
}

export async function selectServerById(queries: Queries, server_id: string): Promise<ServerRow | undefined> {
  const [row] = await queries.select().from(servers).where(eq(servers.server_id, server_id));
  return row;
}

/** The newest first, after the cursor; an unknown cursor is after the end. */
export async function selectServers(queries: Queries, scope: ServerScope, filter: ServerFilter): Promise<ServerRow[]> {
  const cursor = queries
    .select({ created_at: servers.created_at, server_id: servers.server_id })
    .from(servers)
    .where(and(within(scope), eq(servers.server_id, filter.cursor ?? '')));
  return await queries
    .select()
    .from(servers)
    .where(
      and(
        within(scope),
        sql`${servers.tags} @> ${JSON.stringify(filter.tags)}::jsonb`,
        filter.include_destroyed ? undefined : isNull(servers.destroyed_at),
        filter.cursor === undefined ? undefined : sql`(${servers.created_at}, ${servers.server_id}) < (${cursor})`,
      ),
    )
    .orderBy(desc(servers.created_at), desc(servers.server_id))
    .limit(filter.include_destroyed ? PAGE_WITH_DESTROYED : PAGE);
}

/**
 * Decides that a server ends. `override_kill_timeout_ms` replaces its own; where that was decided before, it can only
 * shorten the time that is left. Gives the server as it is now; undefined when there is none.
 */
export async function destroyServer(
  tx: Tx,
  scope: ServerScope,
  server_id: string,
  { now, override_kill_timeout_ms }: { now: Date; override_kill_timeout_ms: number | undefined },
): Promise<ServerRow | undefined> {
  const known = await selectServer(tx, scope, server_id);
  const is_decided = known?.destroyed_at && override_kill_timeout_ms === undefined;
  if (!known || known.ended_at || is_decided) return known;
  await touch(tx, [...about(known), topics.serversEnding(), topics.work(known.datacenter_id)]);
  const kill_at = timestamptz(new Date(now.getTime() + (override_kill_timeout_ms ?? known.kill_timeout_ms)));
  const { destroyed_at } = servers;
  const [row] = await tx
    .update(servers)
    .set({
      destroyed_at: sql`coalesce(${destroyed_at}, ${timestamptz(now)})`,
      kill_at: sql`case when ${destroyed_at} is null then ${kill_at} else least(${servers.kill_at}, ${kill_at}) end`,
    })
    // One that failed has no time left.
    .where(and(eq(servers.server_id, server_id), or(isNull(destroyed_at), isNotNull(servers.kill_at))))
    .returning();
  return row ?? known;
}

/** Decides that all servers of a machine end, by this moment at the latest. */
export async function destroyAllOf(tx: Tx, node_id: string, now: Date, kill_at: Date): Promise<void> {
  const going = await selectOfNode(tx, node_id);
  const works = going.map(({ datacenter_id }) => topics.work(datacenter_id));
  await touch(tx, [...going.flatMap(about), topics.serversEnding(), ...works]);
  await tx
    .update(servers)
    .set({
      destroyed_at: sql`coalesce(${servers.destroyed_at}, ${timestamptz(now)})`,
      kill_at: sql`least(${servers.kill_at}, ${timestamptz(kill_at)})`,
    })
    .where(and(eq(servers.node_id, node_id), isNull(servers.ended_at)));
}

/** A condition: the server that a column of another table names is going, or gone. */
export function isEnding(server_id: Column): SQL {
  return sql`exists (
    select from ${servers} where ${servers.server_id} = ${server_id} and ${servers.destroyed_at} is not null
  )`;
}

/** What a machine has to look after: everything it took that has not ended. */
export async function selectOfNode(queries: Queries, node_id: string): Promise<ServerRow[]> {
  return await queries
    .select()
    .from(servers)
    .where(and(eq(servers.node_id, node_id), isNull(servers.ended_at)))
    .orderBy(asc(servers.created_at));
}

export interface RunningHere {
  node_id: string;
  server_ids: string[];
  started_before: Date;
}

/** Of some servers, the ids of those that a machine has run since before a moment and that are not ending. */
export async function selectRunningHere(
  queries: Queries,
  { node_id, server_ids, started_before }: RunningHere,
): Promise<string[]> {
  const rows = await queries
    .select({ server_id: servers.server_id })
    .from(servers)
    .where(
      and(
        eq(servers.node_id, node_id),
        sql`${servers.server_id} = any(${sql.param(server_ids)}::uuid[])`,
        lte(servers.started_at, started_before),
        isNull(servers.destroyed_at),
      ),
    )
    .orderBy(asc(servers.created_at))
    .limit(server_ids.length);
  return rows.map(({ server_id }) => server_id);
}

/** Whether a machine has servers that have not ended. */
export async function hasServers(queries: Queries, node_id: string): Promise<boolean> {
  const going = and(eq(servers.node_id, node_id), isNull(servers.ended_at));
  return (await queries.select({ server_id: servers.server_id }).from(servers).where(going).limit(1)).length > 0;
}

/** Gives a server to a machine. */
export async function assignServer(
  tx: Tx,
  server_id: string,
  place: Pick<ServerRow, 'node_id' | 'user_id' | 'ports'>,
): Promise<void> {
  await tx.update(servers).set(place).where(eq(servers.server_id, server_id));
}

export async function setStarted(
  tx: Tx,
  { server_id, namespace_id }: Named,
  { process, started_at }: { process: ProcessIdentity; started_at: Date },
): Promise<void> {
  await touch(tx, about({ server_id, namespace_id }));
  await tx.update(servers).set({ process, started_at }).where(eq(servers.server_id, server_id));
}

/** Notes that a server cannot be started: it ends with this reason. */
export async function setFailed(tx: Tx, { server_id, namespace_id }: Named, failure: string, now: Date): Promise<void> {
  await touch(tx, [...about({ server_id, namespace_id }), topics.serversEnding()]);
  await tx
    .update(servers)
    .set({ failure, destroyed_at: sql`coalesce(${servers.destroyed_at}, ${timestamptz(now)})` })
    .where(eq(servers.server_id, server_id));
}

/** How a server ended. */
export type ServerEnd = Named & Pick<ServerRow, 'exit_code' | 'exit_signal' | 'failure'>;

/**
 * Notes that nothing of these servers is left, and gives their ports back. In one statement, because everyone who creates
 * or destroys a server waits for the rows of these topics.
 */
export async function setEnded(queries: Queries, ends: readonly ServerEnd[], now: Date): Promise<void> {
  const column = (key: keyof ServerEnd) => sql.param(ends.map((end) => end[key]));
  await queries.execute(sql`
    with ${bump([...ends.flatMap(about), topics.serversEnding()])},
    ended as (
      update ${servers} set
        exit_code = ended.exit_code, exit_signal = ended.exit_signal, failure = ended.failure,
        ended_at = ${timestamptz(now)}, destroyed_at = coalesce(${servers.destroyed_at}, ${timestamptz(now)})
      from unnest(
        ${column('server_id')}::uuid[], ${column('exit_code')}::int[], ${column('exit_signal')}::text[],
        ${column('failure')}::text[]
      ) as ended (server_id, exit_code, exit_signal, failure)
      where ${servers.server_id} = ended.server_id and ${servers.ended_at} is null
        -- The count makes the topics the first rows that are locked.
        and (select count(*) from bumped) > 0
    )
    update ${serverPorts} set release_ts = ${timestamptz(now)}
    where server_id = any(${column('server_id')}::uuid[]) and (select count(*) from bumped) > 0`);
}

/** Ports of a machine that are in use, or were until this moment. */
export async function selectTakenPorts(queries: Queries, node_id: string, since: Date): Promise<Set<number>> {
  const rows = await queries
    .select({ port: serverPorts.port })
    .from(serverPorts)
    .where(
      and(
        eq(serverPorts.node_id, node_id),
        or(isNull(serverPorts.release_ts), sql`${serverPorts.release_ts} > ${timestamptz(since)}`),
      ),
    );
  return new Set(rows.map(({ port }) => port));
}

/** Takes ports for a server; false, and some of them taken, when one is not free. */
export async function takePorts(
  tx: Tx,
  owner: { node_id: string; server_id: string },
  ports: number[],
  rested_since: Date,
): Promise<boolean> {
  if (ports.length === 0) return true;
  const taken = await tx.execute(sql`
    insert into ${serverPorts} (node_id, port, server_id)
    select ${owner.node_id}::uuid, port, ${owner.server_id}::uuid from unnest(${sql.param(ports)}::int[]) as port
    on conflict (node_id, port) do update set server_id = excluded.server_id, release_ts = null
      where ${serverPorts.release_ts} <= ${timestamptz(rested_since)}
    returning port`);
  return taken.length === ports.length;
}

function within({ game_id, namespace_id }: ServerScope) {
  return and(eq(servers.game_id, game_id), eq(servers.namespace_id, namespace_id));
}

/** How servers came out: when each was started, and how it ended, as far as it has. */
export async function selectOutcomes(queries: Queries, server_ids: string[]) {
  return await queries
    .select({
      server_id: servers.server_id,
      started_at: servers.started_at,
      exit_code: servers.exit_code,
      exit_signal: servers.exit_signal,
      failure: servers.failure,
    })
    .from(servers)
    .where(sql`${servers.server_id} = any(${sql.param(server_ids)}::uuid[])`);
}
