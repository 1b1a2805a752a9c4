import { and, eq, isNull, or, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../../platform/database/database.ts';
import { timestamptz } from '../../../platform/database/moments.ts';
import { serverPorts } from '../tables.ts';

/** Returns the ports of a machine that are in use, or were released after `released_before`. */
export async function selectUnavailablePorts(
  queries: Queries,
  node_id: string,
  released_before: Date,
): Promise<Set<number>> {
  const rows = await queries
    .select({ port: serverPorts.port })
    .from(serverPorts)
    .where(
      and(
        eq(serverPorts.node_id, node_id),
        or(isNull(serverPorts.release_ts), sql`${serverPorts.release_ts} > ${timestamptz(released_before)}`),
      ),
    );
  return new Set(rows.map(({ port }) => port));
}

/** Reserves ports for a server. Returns false, with some of them reserved, if one is not free; the caller rolls back. */
export async function reservePorts(
  tx: Tx,
  owner: { node_id: string; server_id: string },
  ports: number[],
  released_before: Date,
): Promise<boolean> {
  if (ports.length === 0) return true;
  const reserved = await tx.execute(sql`
    insert into ${serverPorts} (node_id, port, server_id)
    select ${owner.node_id}::uuid, port, ${owner.server_id}::uuid from unnest(${sql.param(ports)}::int[]) as port
    on conflict (node_id, port) do update set server_id = excluded.server_id, release_ts = null
      where ${serverPorts.release_ts} <= ${timestamptz(released_before)}
    returning port`);
  return reserved.length === ports.length;
}
