import { and, asc, type Column, eq, inArray, isNull, ne, notInArray, type SQL, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import type { DedicatedConnection } from '../../platform/database/dedicated-connection.ts';
import { touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type MachineRow, type MachineSnapshot, type MachineState, machines, NO_HOLDER } from './tables.ts';

// A transaction locks the row of a machine before any topic, and the topics before all other rows. See `declareLost` for
// the only exception.

const MACHINES_MAX = 10_000;
const DELETED_AT_ONCE_MAX = 100;
/** Time for the machines of a restored database to start, before they are declared lost. */
export const RESTORED_REST_MS = 600_000;

/** A machine, and the process that is its holder or is to become it. */
export interface Holding {
  node_id: string;
  holder: string;
}

export type Registration = Pick<
  MachineRow,
  'node_id' | 'datacenter_id' | 'name' | 'place' | 'holder' | 'lost_after_ms'
> &
  Partial<Pick<MachineRow, 'cluster_id'>>;

/**
 * Makes a process the holder of a machine. Returns false if another process may be the holder: the machine is up in another
 * place, neither released nor offered, and its heartbeat is recent and differs from `unchanged_beat`, which the caller saw stay the
 * same; null if the caller has not watched it for long enough.
 */
export async function registerMachine(
  tx: Tx,
  { node_id, datacenter_id, name, place, holder, lost_after_ms, cluster_id = null }: Registration,
  unchanged_beat: number | null,
): Promise<boolean> {
  const rows = await tx.execute(sql`
    insert into ${machines} as machine
      (node_id, datacenter_id, name, place, holder, beat, beat_ts, state, state_ts, lost_after_ms, cluster_id)
    values (${node_id}::uuid, ${datacenter_id}::uuid, ${name}, ${place}, ${holder}::uuid, 1, now(), 'up', now(), ${lost_after_ms},
        ${cluster_id}::uuid)
    on conflict (node_id) do update set
      datacenter_id = excluded.datacenter_id, name = excluded.name, place = excluded.place, holder = excluded.holder,
      beat = machine.beat + 1, beat_ts = now(), state = 'up', state_ts = now(), lost_after_ms = excluded.lost_after_ms,
      cluster_id = excluded.cluster_id, is_offered = false
    where machine.state <> 'up' or machine.place = excluded.place or machine.holder = ${NO_HOLDER}::uuid
      or machine.is_offered or machine.beat = ${unchanged_beat}::bigint
      or machine.beat_ts < now() - machine.lost_after_ms * interval '1 ms'
    returning node_id`);
  if (rows.length > 0) await touch(tx, [topics.machines()]);
  return rows.length > 0;
}

const COLUMNS = sql`node_id, datacenter_id, name, place, holder, beat::float8 as beat, state, lost_after_ms, cluster_id, is_offered,
  (extract(epoch from beat_ts) * 1000)::float8 as beat_ts, (extract(epoch from state_ts) * 1000)::float8 as state_ts,
  (extract(epoch from drain_ts) * 1000)::float8 as drain_ts,
  (extract(epoch from drain_deadline_ts) * 1000)::float8 as drain_deadline_ts,
  coalesce(drain_deadline_ts <= now(), false) as is_drain_deadline_over,
  state = 'lost' and state_ts <= now() - interval '10 minutes' as is_abandoned`;

type RawMachine = Record<string, unknown> &
  Omit<MachineSnapshot, 'beat_ts' | 'state_ts' | 'drain_ts' | 'drain_deadline_ts'> & {
    beat_ts: number;
    state_ts: number;
    drain_ts: number | null;
    drain_deadline_ts: number | null;
  };

function toSnapshot({ beat_ts, state_ts, drain_ts, drain_deadline_ts, ...row }: RawMachine): MachineSnapshot {
  const orNull = (moment: number | null) => (moment === null ? null : new Date(moment));
  return {
    ...row,
    beat_ts: new Date(beat_ts),
    state_ts: new Date(state_ts),
    drain_ts: orNull(drain_ts),
    drain_deadline_ts: orNull(drain_deadline_ts),
  };
}

/**
 * Writes the heartbeats of those machines of which the process is the holder and that are up. Returns their ids, and all machines
 * as they were before.
 */
export async function writeHeartbeats(
  connection: DedicatedConnection,
  holdings: readonly Holding[],
): Promise<{ written: ReadonlySet<string>; machines: MachineSnapshot[] }> {
  const rows = await connection.execute<RawMachine & { is_written: boolean }>(sql`
    with written as (
      update ${machines} as machine set beat = beat + 1, beat_ts = now()
      from unnest(
        ${sql.param(holdings.map(({ node_id }) => node_id))}::uuid[], ${sql.param(holdings.map(({ holder }) => holder))}::uuid[]
      ) as held (node_id, holder)
      where machine.node_id = held.node_id and machine.holder = held.holder and machine.state = 'up'
      returning machine.node_id
    )
    select ${COLUMNS}, exists (select from written where written.node_id = machines.node_id) as is_written
    from ${machines} order by node_id limit ${MACHINES_MAX}`);
  const written = new Set(rows.filter(({ is_written }) => is_written).map(({ node_id }) => node_id));
  return { written, machines: rows.map(({ is_written: _, ...row }) => toSnapshot(row)) };
}

/** Returns all machines. */
export async function selectMachines(queries: Queries): Promise<MachineSnapshot[]> {
  const rows = await queries.execute<RawMachine>(sql`
    select ${COLUMNS} from ${machines} order by node_id limit ${MACHINES_MAX}`);
  return rows.map(toSnapshot);
}

export async function selectMachine(queries: Queries, node_id: string): Promise<MachineRow | undefined> {
  const [row] = await queries.select().from(machines).where(eq(machines.node_id, node_id));
  return row;
}

/**
 * Declares a machine lost unless its holder or its heartbeat has changed since it was read. Returns how many servers ended with
 * it; undefined if it is not lost.
 */
export async function declareLost(
  tx: Tx,
  { node_id, holder, beat }: Holding & { beat: number },
  endServersOf: (tx: Tx, node_id: string) => Promise<number>,
): Promise<number | undefined> {
  const rows = await tx
    .select({ node_id: machines.node_id })
    .from(machines)
    .where(
      and(
        eq(machines.node_id, node_id),
        eq(machines.holder, holder),
        eq(machines.beat, beat),
        inArray(machines.state, ['up', 'resting']),
      ),
    )
    // Waits for transactions that take work for the machine, see `lockHeld`.
    .for('update');
  if (rows.length === 0) return undefined;
  await tx.update(machines).set({ state: 'lost', state_ts: sql`now()` }).where(eq(machines.node_id, node_id));
  const ended = await endServersOf(tx, node_id);
  // Last, because many servers take long to end, and every change of any machine needs this topic. No transaction that has it
  // waits for another topic.
  await touch(tx, [topics.machines()]);
  return ended;
}

/** Records which cluster runs servers for the process of a machine. */
export async function setCluster(tx: Tx, { node_id, holder }: Holding, cluster_id: string): Promise<void> {
  const is_own = and(eq(machines.node_id, node_id), eq(machines.holder, holder));
  await tx.update(machines).set({ cluster_id }).where(is_own);
  await touch(tx, [topics.machines()]);
}

/** Releases the machine of a cluster: the next process that asks becomes its holder. */
export async function release(tx: Tx, { node_id, holder }: Holding): Promise<void> {
  const rows = await tx
    .update(machines)
    .set({ holder: NO_HOLDER, beat: sql`${machines.beat} + 1`, beat_ts: sql`now()` })
    .where(and(eq(machines.node_id, node_id), eq(machines.holder, holder), eq(machines.state, 'up')))
    .returning({ node_id: machines.node_id });
  if (rows.length > 0) await touch(tx, [topics.machines()]);
}

/** Sets whether the holder of a machine offers it to other processes. */
export async function setOffered(tx: Tx, { node_id, holder }: Holding, is_offered: boolean): Promise<void> {
  const is_own = and(eq(machines.node_id, node_id), eq(machines.holder, holder), ne(machines.is_offered, is_offered));
  const rows = await tx.update(machines).set({ is_offered }).where(is_own).returning({ node_id: machines.node_id });
  if (rows.length > 0) await touch(tx, [topics.machines()]);
}

/** Returns whether the process of a machine other than `node_id` uses a cluster. */
export async function isAnyOtherUsing(
  queries: Queries,
  { cluster_id, node_id }: { cluster_id: string; node_id: string },
): Promise<boolean> {
  const is_other = and(eq(machines.cluster_id, cluster_id), ne(machines.node_id, node_id), eq(machines.state, 'up'));
  const rows = await queries.select({ node_id: machines.node_id }).from(machines).where(is_other).limit(1);
  return rows.length > 0;
}

/** Records that the process of a machine was stopped. */
export async function setStopped(
  tx: Tx,
  { node_id, holder }: Holding,
  { state, lost_after_ms }: { state: Extract<MachineState, 'resting' | 'stopped'>; lost_after_ms: number },
): Promise<void> {
  const rows = await tx
    .update(machines)
    .set({ state, state_ts: sql`now()`, beat: sql`${machines.beat} + 1`, lost_after_ms })
    .where(and(eq(machines.node_id, node_id), eq(machines.holder, holder), eq(machines.state, 'up')))
    .returning({ node_id: machines.node_id });
  if (rows.length > 0) await touch(tx, [topics.machines()]);
}

/**
 * Locks the row of a machine, so that it is not declared lost before the transaction ends. Returns undefined if the
 * process may take no work for it: it is not the holder, or the machine is not up.
 */
export async function lockHeld(tx: Tx, { node_id, holder }: Holding): Promise<{ is_draining: boolean } | undefined> {
  const [row] = await tx
    .select({ drain_ts: machines.drain_ts })
    .from(machines)
    .where(and(eq(machines.node_id, node_id), eq(machines.holder, holder), eq(machines.state, 'up')))
    // Unlike a stronger lock, it does not keep the heartbeat waiting.
    .for('key share');
  return row && { is_draining: row.drain_ts !== null };
}

/** Returns a condition: the machine in a column of another table has a process. */
export function isUp(node_id: Column): SQL {
  return sql`exists (select from ${machines} where ${machines.node_id} = ${node_id} and ${machines.state} = 'up')`;
}

/** Waits for the transactions that take work for a machine, see `lockHeld`. */
export async function awaitServersTaken(tx: Tx, node_id: string): Promise<void> {
  await tx.select({ node_id: machines.node_id }).from(machines).where(eq(machines.node_id, node_id)).for('update');
}

/** Returns whether a datacenter has a machine besides these that takes servers. */
export async function isOtherTakingServers(
  queries: Queries,
  { node_ids, datacenter_id }: { node_ids: string[]; datacenter_id: string },
): Promise<boolean> {
  const rows = await queries
    .select({ node_id: machines.node_id })
    .from(machines)
    .where(
      and(
        eq(machines.datacenter_id, datacenter_id),
        notInArray(machines.node_id, node_ids),
        isNull(machines.cluster_id),
        eq(machines.state, 'up'),
        isNull(machines.drain_ts),
      ),
    )
    .limit(1);
  return rows.length > 0;
}

/**
 * Begins to drain a machine, or changes its deadline; `null` ends the drain. Uses the clock of the database, as the check of
 * the deadline does. Returns false if there is no such machine.
 */
export async function setDrain(
  tx: Tx,
  node_id: string,
  drain: { deadline_ms: number | undefined } | null,
): Promise<boolean> {
  const { deadline_ms } = drain ?? {};
  const rows = await tx
    .update(machines)
    .set({
      drain_ts: drain ? sql`coalesce(${machines.drain_ts}, now())` : null,
      drain_deadline_ts: deadline_ms === undefined ? null : sql`now() + ${deadline_ms}::bigint * interval '1 ms'`,
    })
    .where(eq(machines.node_id, node_id))
    .returning({ node_id: machines.node_id });
  if (rows.length > 0) await touch(tx, [topics.machines()]);
  return rows.length > 0;
}

/** The statement that makes all machines of a restored database rest. The database of an older release has none. */
export const SET_ALL_RESTING = `
  do $$ begin
    if to_regclass('machines') is not null then
      update machines set state = 'resting', lost_after_ms = ${RESTORED_REST_MS} where state = 'up';
    end if;
  end $$`;

/** Deletes machines that have been stopped or lost for longer than a time. Returns how many; more may remain. */
export async function deleteGone(queries: Queries, longer_than_ms: number): Promise<number> {
  const is_gone = and(
    inArray(machines.state, ['stopped', 'lost']),
    sql`${machines.state_ts} < now() - ${longer_than_ms}::bigint * interval '1 ms'`,
  );
  const gone = queries
    .select({ node_id: machines.node_id })
    .from(machines)
    .where(is_gone)
    .orderBy(asc(machines.state_ts))
    .limit(DELETED_AT_ONCE_MAX);
  const rows = await queries
    .delete(machines)
    // A machine that starts again meanwhile is locked until it is up.
    .where(and(inArray(machines.node_id, gone), is_gone))
    .returning({ node_id: machines.node_id });
  return rows.length;
}
