import { sql } from 'drizzle-orm';
import {
  bigint,
  customType,
  doublePrecision,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uuid,
} from 'drizzle-orm/pg-core';
import type { ProcessIdentity } from '../../platform/processes.ts';
import type { CallerOf, PortProtocol } from '../../platform/tokens/caller.ts';
import { namespaces } from '../namespaces/tables.ts';

const moment = () => timestamp({ withTimezone: true, precision: 3, mode: 'date' });
const bytes = customType<{ data: Uint8Array }>({ dataType: () => 'bytea' });

/** How a port is reached. `host`: a range or port of the machine itself; `game_guard`: through the gateway. */
export interface ServerPort {
  protocol: PortProtocol;
  routing: 'game_guard' | 'host';
  /** The port that the process binds; until a machine takes the server, the one its developer asked for. */
  internal_port?: number;
  /** The one its developer asked for, once a machine has taken the server. */
  wanted_port?: number;
  /** Ports that the developer chose, on the machine's own network. */
  port_range?: { min: number; max: number };
  public_hostname?: string;
  public_port?: number;
}

/** Why a machine does not take a server: the quota of its group, or its own. */
export const WAIT_REASONS = ['group_quota', 'machine_full'] as const;
export type WaitReason = (typeof WAIT_REASONS)[number];

/**
 * Game servers: what is wanted of them, and what was seen of them. A server without a node waits for one; one whose
 * `destroyed_at` is set is going; one whose `ended_at` is set is gone, its process with all descendants.
 */
export const servers = pgTable(
  'servers',
  {
    server_id: uuid().primaryKey(),
    game_id: uuid().notNull(),
    namespace_id: uuid()
      .notNull()
      .references(() => namespaces.namespace_id),
    datacenter_id: uuid().notNull(),
    build_id: uuid().notNull(),
    tags: jsonb().$type<Record<string, string>>().notNull(),
    arguments: jsonb().$type<string[]>().notNull(),
    environment: jsonb().$type<Record<string, string>>().notNull(),
    /** What SERVICE_ and RIVET_ variables it gets, without the prefix, besides its token. */
    service_environment: jsonb().$type<Record<string, string>>().notNull(),
    /** Whose token it gets; made when it starts, so that none lies in the database. */
    token_caller: jsonb().$type<CallerOf<'lobby'>>(),
    network_mode: text({ enum: ['bridge', 'host'] }).notNull(),
    ports: jsonb().$type<Record<string, ServerPort>>().notNull(),
    cpu: integer().notNull(),
    memory: integer().notNull(),
    kill_timeout_ms: bigint({ mode: 'number' }).notNull(),
    created_at: moment().notNull(),
    /** The machine that runs it. */
    node_id: uuid(),
    /** Why no machine has taken it; noted of the one that has waited longest in its namespace. */
    wait_reason: text({ enum: WAIT_REASONS }),
    /** The user it runs as, on a machine where we are root. */
    user_id: integer(),
    process: jsonb().$type<ProcessIdentity>(),
    /** When its process was started and its ports were known. */
    started_at: moment(),
    /** When it was decided, or seen, that it ends. */
    destroyed_at: moment(),
    /** From when on it is not asked but killed. */
    kill_at: moment(),
    ended_at: moment(),
    exit_code: integer(),
    exit_signal: text(),
    /** In words, when it never ran or was lost. */
    failure: text(),
  },
  (table) => [
    index('servers_by_namespace').on(table.namespace_id, table.created_at, table.server_id),
    index('servers_waiting')
      .on(table.datacenter_id, table.namespace_id, table.created_at)
      .where(sql`node_id is null and destroyed_at is null`),
    index('servers_ending_unplaced')
      .on(table.datacenter_id, table.destroyed_at)
      .where(sql`node_id is null and ended_at is null and destroyed_at is not null`),
    index('servers_ended').on(table.ended_at).where(sql`ended_at is not null`),
    index('servers_of_node').on(table.node_id).where(sql`ended_at is null`),
  ],
);

/** Which port of which machine belongs to whom. One that was given back rests for a while before it is given out again. */
export const serverPorts = pgTable(
  'server_ports',
  {
    node_id: uuid().notNull(),
    port: integer().notNull(),
    server_id: uuid()
      .notNull()
      .references(() => servers.server_id),
    release_ts: moment(),
  },
  (table) => [
    primaryKey({ columns: [table.node_id, table.port] }),
    index('server_ports_by_server').on(table.server_id),
  ],
);

export const LOG_STREAMS = ['std_out', 'std_err'] as const;
export type LogStream = (typeof LOG_STREAMS)[number];

/** What servers wrote, in pieces as it was read: whole lines, each piece with the time it was read at. */
export const serverLogChunks = pgTable(
  'server_log_chunks',
  {
    server_id: uuid()
      .notNull()
      .references(() => servers.server_id),
    stream: text({ enum: LOG_STREAMS }).notNull(),
    /** The number of its first line; the log's first line has number 0. */
    first_line: bigint({ mode: 'number' }).notNull(),
    line_count: integer().notNull(),
    ts: moment().notNull(),
    /** How much of the process's output had been read with this piece: where to go on after a restart. */
    end_offset: bigint({ mode: 'number' }).notNull(),
    /** Bytes kept of this log, this piece included, since its beginning. */
    total_bytes: bigint({ mode: 'number' }).notNull(),
    /** The lines, each ended by a newline. */
    content: bytes().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.server_id, table.stream, table.first_line] }),
    index('server_log_chunks_by_age').on(table.ts),
  ],
);

/** A row of usage for each server and this much time. */
export const INTERVAL_MS = 10 * 60_000;

/** Processor time that servers used, by intervals of time: what adds up to a bill. */
export const serverUsage = pgTable(
  'server_usage',
  {
    server_id: uuid()
      .notNull()
      .references(() => servers.server_id),
    interval_start: moment().notNull(),
    game_id: uuid().notNull(),
    datacenter_id: uuid().notNull(),
    cpu_ms: bigint({ mode: 'number' }).notNull(),
    /** The time in which it was used; null, of a row of an early release, for the whole interval. */
    from_ts: moment(),
    until_ts: moment(),
  },
  (table) => [
    primaryKey({ columns: [table.server_id, table.interval_start] }),
    index('server_usage_of_game').on(table.game_id, table.interval_start),
    index('server_usage_by_age').on(table.interval_start),
  ],
);

/** Usage of a whole game, for intervals whose rows of single servers have been removed. */
export const gameUsage = pgTable(
  'game_usage',
  {
    game_id: uuid().notNull(),
    datacenter_id: uuid().notNull(),
    interval_start: moment().notNull(),
    /** Not whole: of a row that reached into two intervals, each has its share. */
    cpu_ms: doublePrecision().notNull(),
  },
  (table) => [primaryKey({ columns: [table.game_id, table.interval_start, table.datacenter_id] })],
);

/** How much a server had used when it was last looked at. */
export const serverMeters = pgTable('server_meters', {
  server_id: uuid()
    .primaryKey()
    .references(() => servers.server_id),
  cpu_ms: bigint({ mode: 'number' }).notNull(),
  /** When that was; null of a row of an early release. */
  read_ts: moment(),
});

export type ServerRow = typeof servers.$inferSelect;
export type LogChunkRow = typeof serverLogChunks.$inferSelect;
