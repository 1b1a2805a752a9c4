import { bigint, boolean, integer, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';

/**
 * `up`: a process writes its heartbeat. `resting`: its process was stopped, and its servers run on. `stopped`: its process was
 * stopped, and no server is left. `lost`: the others declared it lost, with its servers.
 */
export const MACHINE_STATES = ['up', 'resting', 'stopped', 'lost'] as const;
export type MachineState = (typeof MACHINE_STATES)[number];

/** The `holder` of a cluster's machine that its last holder has released. */
export const NO_HOLDER = '00000000-0000-0000-0000-000000000000';
/** The `cluster_id` of a process that does not know its cluster yet, or that leaves it. */
export const UNKNOWN_CLUSTER = NO_HOLDER;

/**
 * The machines that run game servers: one for each data directory, so that each process of the service is one, and one for
 * each cluster, which processes share.
 */
export const machines = pgTable('machines', {
  node_id: uuid().primaryKey(),
  datacenter_id: uuid().notNull(),
  /** The name of its host, for operators. */
  name: text().notNull(),
  /** Identifies the data directory of its holder, and the boot of its host. A copy of the directory has another place. */
  place: text().notNull(),
  /**
   * The id of the process that may take work for it: a new one at each start, and at each return after it was lost.
   */
  holder: uuid().notNull(),
  /** The machine of the cluster that runs servers for this process; null for a machine that runs servers itself. */
  cluster_id: uuid(),
  /** For the machine of a cluster: its holder does not reach the cluster, so a process that does may take it over. */
  is_offered: boolean().notNull().default(false),
  /** The heartbeat, a number that the holder increments. Only whether it changes matters. */
  beat: bigint({ mode: 'number' }).notNull(),
  /** When it was written last, by the clock of the database. Whether a machine is lost depends on `beat`. */
  beat_ts: moment().notNull(),
  state: text({ enum: MACHINE_STATES }).notNull(),
  state_ts: moment().notNull(),
  /** How long its heartbeat may stay the same until it is declared lost. */
  lost_after_ms: integer().notNull(),
  /** Since when it takes no new servers. Null unless it is being drained. */
  drain_ts: moment(),
  /** When its last lobbies and servers end. Null without a deadline. */
  drain_deadline_ts: moment(),
});

export type MachineRow = typeof machines.$inferSelect;

/** A machine's row when it was read, and what depended on the clock of the database. */
export type MachineSnapshot = MachineRow & {
  /** Whether the deadline of its drain is over. */
  is_drain_deadline_over: boolean;
  /** Whether it was declared lost long ago, so that others remove what it left in a cluster. */
  is_abandoned: boolean;
};
