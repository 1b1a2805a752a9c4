import { and, asc, desc, eq, isNotNull, isNull, type SQL, sql } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import { isAnyOf } from '../../platform/database/lists.ts';
import { type ServerRow, type Status, servers } from './tables.ts';

/** The part of an environment's list of servers that a watcher sees. */
export interface Window {
  /** By default all that have not ended. */
  status: Status | undefined;
  order: 'newest' | 'oldest';
  /** The index of the first server, and the maximum number of servers. */
  from: number;
  count: number;
}

const COLUMNS = {
  server_id: servers.server_id,
  datacenter_id: servers.datacenter_id,
  build_id: servers.build_id,
  tags: servers.tags,
  cpu: servers.cpu,
  memory: servers.memory,
  created_at: servers.created_at,
  started_at: servers.started_at,
  destroyed_at: servers.destroyed_at,
  ended_at: servers.ended_at,
  exit_code: servers.exit_code,
  exit_signal: servers.exit_signal,
};

/** A server as lists have it. */
export type ListedServer = Pick<ServerRow, keyof typeof COLUMNS>;

/** Returns the servers of a window, in order. */
export async function selectWindow(
  queries: Queries,
  namespace_id: string,
  { status, order, from, count }: Window,
): Promise<ListedServer[]> {
  const inOrder = order === 'newest' ? desc : asc;
  return await queries
    .select(COLUMNS)
    .from(servers)
    .where(and(eq(servers.namespace_id, namespace_id), status ? IS[status] : isNull(servers.ended_at)))
    .orderBy(inOrder(servers.created_at), inOrder(servers.server_id))
    .offset(from)
    .limit(count);
}

type StatusBeforeEnd = Exclude<Status, 'ended'>;

/** Returns how many servers of a namespace have not ended, by status. */
export async function countByStatus(queries: Queries, namespace_id: string): Promise<Record<StatusBeforeEnd, number>> {
  const [row] = await queries
    .select(countsByStatus())
    .from(servers)
    .where(and(eq(servers.namespace_id, namespace_id), isNull(servers.ended_at)));
  return { starting: 0, running: 0, ending: 0, ...row };
}

/** Returns how many servers of machines have not ended, by status. */
export async function countByStatusOn(queries: Queries, node_ids: string[]): Promise<Record<StatusBeforeEnd, number>> {
  const [row] = await queries
    .select(countsByStatus())
    .from(servers)
    .where(and(isAnyOf(servers.node_id, node_ids), isNull(servers.ended_at)));
  return { starting: 0, running: 0, ending: 0, ...row };
}

function countsByStatus() {
  const countOf = (condition: SQL | undefined) => sql<number>`(count(*) filter (where ${condition}))::int`;
  return { starting: countOf(IS.starting), running: countOf(IS.running), ending: countOf(IS.ending) };
}

const IS: Record<Status, SQL | undefined> = {
  starting: and(isNull(servers.started_at), isNull(servers.destroyed_at), isNull(servers.ended_at)),
  running: and(isNotNull(servers.started_at), isNull(servers.destroyed_at), isNull(servers.ended_at)),
  ending: and(isNotNull(servers.destroyed_at), isNull(servers.ended_at)),
  ended: isNotNull(servers.ended_at),
};
