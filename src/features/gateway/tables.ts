import { sql } from 'drizzle-orm';
import { bigint, boolean, index, integer, pgTable, primaryKey, uuid } from 'drizzle-orm/pg-core';
import { machines } from '../machines/tables.ts';
import { servers } from '../servers/tables.ts';

/** The latest connection of each player whom the gateway reports. */
export const gatewayConnections = pgTable(
  'gateway_connections',
  {
    player_id: uuid().primaryKey(),
    connection_id: uuid().notNull(),
    /** The machine whose gateway has the connection. */
    node_id: uuid().notNull(),
    /** Whether the connection is over, and being reported. No other may replace it meanwhile. */
    is_ended: boolean().notNull().default(false),
  },
  (table) => [index('gateway_connections_of_node').on(table.node_id)],
);

const count = () => bigint({ mode: 'number' }).notNull();

/** What players and a server have exchanged through the gateway of each machine. */
export const gatewayTraffic = pgTable(
  'gateway_traffic',
  {
    server_id: uuid()
      .notNull()
      .references(() => servers.server_id, { onDelete: 'cascade' }),
    node_id: uuid().notNull(),
    requests: count(),
    sockets: count(),
    connections: count(),
    open: integer().notNull(),
    received_bytes: count(),
    sent_bytes: count(),
    answers: bigint({ mode: 'number' }).array().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.server_id, table.node_id] }),
    index('gateway_traffic_open').on(table.node_id).where(sql`open > 0`),
  ],
);

/**
 * The last batch of counts that each machine has added to `gatewayTraffic`. A process numbers its batches from a start that
 * no other process has, so each is added once.
 */
export const gatewayBatches = pgTable('gateway_batches', {
  node_id: uuid()
    .primaryKey()
    .references(() => machines.node_id, { onDelete: 'cascade' }),
  batch: bigint({ mode: 'number' }).notNull(),
});

/** What players and a server have exchanged through the gateway. */
export interface TrafficCounts {
  /** Requests that were answered. */
  requests: number;
  /** WebSockets that were opened. */
  sockets: number;
  /** TCP connections and UDP clients of relays. */
  connections: number;
  /** WebSockets, connections and clients that are open. */
  open: number;
  /** Bytes that players sent to the server. */
  received_bytes: number;
  /** Bytes that the server sent to players. */
  sent_bytes: number;
  /** Answers by the time they took, in the classes of `traffic-counts.ts`. */
  answers: number[];
}
