import { and, eq, gt, inArray, not, or, sql } from 'drizzle-orm';
import type { Database, Queries, Tx } from '../../platform/database/database.ts';
import { touch } from '../../platform/watch/versions.ts';
import { isUp } from '../machines/machines.ts';
import { topics } from '../topics.ts';
import { gatewayConnections } from './tables.ts';

/** A connection of a player through the gateway. */
export interface PlayerConnection {
  player_id: string;
  connection_id: string;
}

/** Connections that are read at a time. */
export const CONNECTIONS_READ_MAX = 1_000;

/**
 * Records the connection of a player, before the player counts as connected. An earlier connection is replaced and is no
 * longer current; while its end is being reported, the new one is refused. If the replaced connection is of another
 * machine, notifies that machine.
 */
export async function takeConnection(
  database: Pick<Database, 'queries' | 'transact'>,
  node_id: string,
  connection: PlayerConnection,
): Promise<'first' | 'replacing' | 'refused'> {
  const row = { ...connection, node_id };
  const [first] = await database.queries
    .insert(gatewayConnections)
    .values(row)
    .onConflictDoNothing()
    .returning({ player_id: gatewayConnections.player_id });
  return first ? 'first' : await database.transact((tx) => replaceConnection(tx, row));
}

async function replaceConnection(
  tx: Tx,
  { player_id, connection_id, node_id }: typeof gatewayConnections.$inferInsert,
): Promise<'first' | 'replacing' | 'refused'> {
  const [before] = await tx
    .select({ node_id: gatewayConnections.node_id })
    .from(gatewayConnections)
    .where(eq(gatewayConnections.player_id, player_id))
    .for('update');
  const [taken] = await tx
    .insert(gatewayConnections)
    .values({ player_id, connection_id, node_id })
    .onConflictDoUpdate({
      target: gatewayConnections.player_id,
      set: { connection_id, node_id },
      setWhere: eq(gatewayConnections.is_ended, false),
    })
    .returning({ has_replaced: sql<boolean>`xmax <> 0` });
  if (!taken) return 'refused';
  // No transaction that holds the topic waits for a connection, so this one may lock it last.
  if (before && before.node_id !== node_id) await touch(tx, [topics.replacedOf(before.node_id)]);
  return taken.has_replaced ? 'replacing' : 'first';
}

/** Returns the last connections of players, by player. A player without one is left out. */
export async function selectLastOf(
  queries: Queries,
  player_ids: readonly string[],
): Promise<Map<string, { connection_id: string; is_ended: boolean }>> {
  const { player_id, connection_id, is_ended } = gatewayConnections;
  const rows = await queries
    .select({ player_id, connection_id, is_ended })
    .from(gatewayConnections)
    .where(inArray(player_id, [...player_ids]));
  return new Map(rows.map((row) => [row.player_id, row]));
}

/**
 * Marks a connection as over, and takes it over for this machine, which reports it. Returns false if another connection
 * has replaced it, or if it belongs to another machine that is up.
 */
export async function endConnection(queries: Queries, node_id: string, connection: PlayerConnection): Promise<boolean> {
  const ended = await queries
    .update(gatewayConnections)
    .set({ is_ended: true, node_id })
    .where(and(isConnection(connection), mayReport(node_id)))
    .returning({ player_id: gatewayConnections.player_id });
  return ended.length > 0;
}

/** Deletes a connection, unless another has replaced it. */
export async function deleteConnection(queries: Queries, connection: PlayerConnection): Promise<void> {
  await queries.delete(gatewayConnections).where(isConnection(connection));
}

interface ConnectionsQuery {
  /** This machine. */
  node_id: string;
  /** The machines whose connections are read: this one, and others. Of the others, those that run again are left out. */
  node_ids: string[];
  after_player_id: string | undefined;
}

/** Returns connections of machines, in the order of their players, after one player. */
export async function selectConnectionsOf(
  queries: Queries,
  { node_id, node_ids, after_player_id }: ConnectionsQuery,
): Promise<PlayerConnection[]> {
  const is_after = after_player_id === undefined ? undefined : gt(gatewayConnections.player_id, after_player_id);
  return await queries
    .select({ player_id: gatewayConnections.player_id, connection_id: gatewayConnections.connection_id })
    .from(gatewayConnections)
    .where(and(inArray(gatewayConnections.node_id, node_ids), mayReport(node_id), is_after))
    .orderBy(gatewayConnections.player_id)
    .limit(CONNECTIONS_READ_MAX);
}

/** Returns a condition: a connection is of this machine, or of one without a process. */
function mayReport(node_id: string) {
  return or(eq(gatewayConnections.node_id, node_id), not(isUp(gatewayConnections.node_id)));
}

function isConnection({ player_id, connection_id }: PlayerConnection) {
  return and(eq(gatewayConnections.player_id, player_id), eq(gatewayConnections.connection_id, connection_id));
}
