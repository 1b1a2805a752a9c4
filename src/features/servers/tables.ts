import { getTableColumns, sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  customType,
  doublePrecision,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';
import type { CallerOf, PortProtocol } from '../../platform/tokens/caller.ts';
import { MINUTE_MS } from '../../platform/units.ts';
import { namespaces } from '../namespaces/tables.ts';

const bytes = customType<{ data: Uint8Array }>({ dataType: () => 'bytea' });

/** The states of a server in lists. */
export const STATUSES = ['starting', 'running', 'ending', 'ended'] as const;
export type Status = (typeof STATUSES)[number];

/** A port of a server. Its routing is `host` (a port or range of the machine) or `game_guard` (through the gateway). */
export interface ServerPort {
  protocol: PortProtocol;
  routing: 'game_guard' | 'host';
  /** The port to listen on. Until a machine takes the server, the port that its developer asked for. */
  internal_port?: number;
  /** The port that its developer asked for, once a machine has taken the server. */
  wanted_port?: number;
  /** Ports of the machine that the developer chose. */
  port_range?: { min: number; max: number };
  public_hostname?: string;
  public_port?: number;
  /** The public port of the relay that leads to it, if it has one. */
  relay_port?: number;
  /** What reports the players of a WebSocket: the server, by default, or the gateway. */
  presence?: 'gateway';
  /**
   * Its name behind the gateway, if it has one. Set together with `public_hostname`: when a machine takes the server if its
   * host is known by then, otherwise when it runs.
   */
  gateway_name?: string;
}

/** What a server needs of a machine, or a machine has left for servers. */
export interface Room {
  ports: number;
  /** Thousandths of a core. */
  cpu: number;
  /** MiB. */
  memory: number;
}

/** Identifies a server to its runtime. Only the runtime interprets it. */
export type Identity = Readonly<Record<string, unknown>>;

/**
 * Why no machine takes a server: its group has used up its quota on each machine, all machines have their maximum of servers,
 * too few free ports, or too little processor time or memory left, or all of them are being drained.
 */
export const WAIT_REASONS = ['group_quota', 'machine_full', 'no_ports', 'no_resources', 'machines_draining'] as const;
export type WaitReason = (typeof WAIT_REASONS)[number];

/** Matches the servers that have crashed, by the rule of `hasCrashed` in end-description.ts. */
export const HAS_CRASHED = sql`ended_at is not null and not has_lost_machine and (
  failure is not null or kill_at is null and (exit_signal is not null or exit_code <> 0)
)`;

/**
 * Game servers: their desired and their observed state. A server without `node_id` waits for a machine. With
 * `destroyed_at` it is ending. With `ended_at` it has ended, and none of its processes is left.
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
    /** The SERVICE_ and RIVET_ variables of the server, without the prefix, except its token. */
    service_environment: jsonb().$type<Record<string, string>>().notNull(),
    /** The caller of the server's token. The token is issued at the start, so that the database has none. */
    token_caller: jsonb().$type<CallerOf<'lobby'>>(),
    network_mode: text({ enum: ['bridge', 'host'] }).notNull(),
    ports: jsonb().$type<Record<string, ServerPort>>().notNull(),
    cpu: integer().notNull(),
    memory: integer().notNull(),
    kill_timeout_ms: bigint({ mode: 'number' }).notNull(),
    created_at: moment().notNull(),
    /** The machine that runs it. */
    node_id: uuid(),
    /** Why no machine has taken it. Set only for the server that has waited longest in its namespace. */
    wait_reason: text({ enum: WAIT_REASONS }),
    /** Null until its runtime has accepted it. The column keeps its old name for earlier releases that run beside this one. */
    identity: jsonb('process').$type<Identity>(),
    /** When it began to run and its ports were known. */
    started_at: moment(),
    /** When its end was requested, or observed. */
    destroyed_at: moment(),
    /** When to kill it if it has not ended by itself. */
    kill_at: moment(),
    ended_at: moment(),
    exit_code: integer(),
    exit_signal: text(),
    /** Why it could not run, was lost, or was ended by Muster or its machine, in words for its developer. */
    failure: text(),
    /** Whether it ended because its machine was declared lost, or was lost or drained in a cluster. It is no crash. */
    has_lost_machine: boolean().notNull().default(false),
    /** Maximum of restarts in a row; null if it is never restarted. */
    restarts_max: integer(),
    /** The first server of its chain, which is a server and its restarts. Null for a server that is never restarted. */
    chain_id: uuid(),
    /** The server that it restarts. */
    restart_of: uuid(),
    /** The server that restarts it. */
    restarted_as: uuid(),
    /** Which restart in a row it is; 0 for none. */
    restart_count: integer().notNull().default(0),
    /** No machine takes it before this time. */
    start_after: moment(),
  },
  (table) => [
    index('servers_by_namespace').on(table.namespace_id, table.created_at, table.server_id),
    index('servers_open').on(table.namespace_id, table.created_at, table.server_id).where(sql`ended_at is null`),
    index('servers_waiting')
      .on(table.datacenter_id, table.namespace_id, table.created_at)
      .where(sql`node_id is null and destroyed_at is null`),
    index('servers_ending_unplaced')
      .on(table.datacenter_id, table.destroyed_at)
      .where(sql`node_id is null and ended_at is null and destroyed_at is not null`),
    index('servers_ended').on(table.ended_at).where(sql`ended_at is not null`),
    index('servers_crashed').on(table.namespace_id, table.ended_at).where(HAS_CRASHED),
    index('servers_of_node').on(table.node_id).where(sql`ended_at is null`),
    index('servers_delayed')
      .on(table.datacenter_id, table.start_after)
      .where(sql`node_id is null and destroyed_at is null and start_after is not null`),
    uniqueIndex('servers_open_of_chain').on(table.chain_id).where(sql`chain_id is not null and ended_at is null`),
  ],
);

/** Ports of machines that servers have or had. A released port is not assigned again for a while. */
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

/**
 * The logs of servers: each row is a chunk of whole lines. `ts`: when the last line was written, as near as it is
 * known.
 */
export const serverLogChunks = pgTable(
  'server_log_chunks',
  {
    server_id: uuid()
      .notNull()
      .references(() => servers.server_id),
    stream: text({ enum: LOG_STREAMS }).notNull(),
    /** The number of its first line, counted from 0 over the whole log. */
    first_line: bigint({ mode: 'number' }).notNull(),
    line_count: integer().notNull(),
    ts: moment().notNull(),
    /** Lines that were written before `ts`: how many, and how many ms before, in pairs, oldest first. Null if all were at `ts`. */
    earlier_lines: integer().array(),
    /** Where to continue reading the server's output, or null for its beginning. Only the runtime interprets it. */
    resume_point: text(),
    /** The resume point of a chunk that an earlier release inserted: an offset in a file. That release may still be running. */
    end_offset: bigint({ mode: 'number' }).notNull().default(0),
    /**
     * Bytes of all chunks of the log up to this one, including those that have been deleted: their lines, and what the
     * database stores for each besides.
     */
    total_bytes: bigint({ mode: 'number' }).notNull(),
    /** The lines, each ended by a newline. */
    content: bytes().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.server_id, table.stream, table.first_line] }),
    index('server_log_chunks_by_age').on(table.ts),
  ],
);

/** Length of an interval of usage. */
export const INTERVAL_MS = 10 * 60_000;

/** Processor time that servers used, by interval. Bills are sums of it. */
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
    /** The time in which it was used. Null in rows of early releases, which stand for the whole interval. */
    from_ts: moment(),
    until_ts: moment(),
  },
  (table) => [
    primaryKey({ columns: [table.server_id, table.interval_start] }),
    index('server_usage_of_game').on(table.game_id, table.interval_start),
    index('server_usage_by_age').on(table.interval_start),
  ],
);

/** Processor time of whole games, for old intervals. It replaces the rows of single servers. */
export const gameUsage = pgTable(
  'game_usage',
  {
    game_id: uuid().notNull(),
    datacenter_id: uuid().notNull(),
    interval_start: moment().notNull(),
    /** Fractional, because a row of a server that spanned two intervals was divided between them. */
    cpu_ms: doublePrecision().notNull(),
  },
  (table) => [primaryKey({ columns: [table.game_id, table.interval_start, table.datacenter_id] })],
);

/** The latest readings of the processor time of servers. */
export const serverMeters = pgTable('server_meters', {
  server_id: uuid()
    .primaryKey()
    .references(() => servers.server_id),
  cpu_ms: bigint({ mode: 'number' }).notNull(),
  /** Null in rows of early releases. */
  read_ts: moment(),
});

/** What servers used, by hour: the elements of the arrays belong to one minute each. It is kept for a day. */
export const serverSamples = pgTable(
  'server_samples',
  {
    server_id: uuid()
      .notNull()
      .references(() => servers.server_id),
    hour_start: moment().notNull(),
    /** Minutes of the hour. */
    minutes: integer().array().notNull(),
    cpu_ms: integer().array().notNull(),
    /** The most in each minute. Elements are null where it is unknown. */
    memory_kib: integer().array().$type<(number | null)[]>().notNull(),
    /** Elements are null if the runtime does not count the traffic of the server. */
    received_bytes: bigint({ mode: 'number' }).array().$type<(number | null)[]>().notNull(),
    sent_bytes: bigint({ mode: 'number' }).array().$type<(number | null)[]>().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.server_id, table.hour_start] }),
    index('server_samples_by_age').on(table.hour_start),
  ],
);

/** What a server used in a minute. */
export interface UsageSample {
  server_id: string;
  /** Minutes since 1970. */
  minute: number;
  cpu_ms: number;
  /** The most of all readings; null if it is unknown. */
  memory_bytes: number | null;
  /** Null if the runtime does not count the traffic of the server. */
  received_bytes: number | null;
  sent_bytes: number | null;
}

/** Returns the minute of a moment, counted since 1970. */
export const minuteOf = (moment: Date): number => Math.floor(moment.getTime() / MINUTE_MS);

/** Returns when a minute begins. */
export const startOfMinute = (minute: number): Date => new Date(minute * MINUTE_MS);

export type ServerRow = typeof servers.$inferSelect;
/** What only the start of a server needs. It may have hundreds of KiB. */
export type ServerProgram = Pick<ServerRow, 'arguments' | 'environment' | 'service_environment'>;
/** A server as its machine reads it in each step: without its program and its tags. */
export type PlacedServer = Omit<ServerRow, keyof ServerProgram | 'tags'>;
const { arguments: _a, environment: _e, service_environment: _s, tags: _t, ...placed } = getTableColumns(servers);
export const PLACED_COLUMNS = placed;
export type LogChunkRow = typeof serverLogChunks.$inferSelect;
