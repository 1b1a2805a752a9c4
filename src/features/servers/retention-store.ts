import { type Column, type SQL, sql } from 'drizzle-orm';
import type { Tx } from '../../platform/database/database.ts';
import { timestamptz } from '../../platform/database/moments.ts';
import { deleteTopics } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import {
  gameUsage,
  INTERVAL_MS,
  LOG_STREAMS,
  serverLogChunks,
  serverMeters,
  serverPorts,
  serverSamples,
  servers,
  serverUsage,
} from './tables.ts';

/** Returns the condition that rows of another feature refer to the server in this column. */
export type InUse = (server_id: Column) => SQL;

const PORTS_AT_ONCE = 1_000;
const USAGE_ROWS_AT_ONCE = 2_000;
const SERVERS_AT_ONCE = 500;

/** Deletes a batch of ports that were released before a given time. Returns how many; more may remain. */
export async function deletePortsBefore(tx: Tx, before: Date): Promise<number> {
  const rows = await tx.execute(sql`
    delete from ${serverPorts} where ctid = any(array(
      select ctid from ${serverPorts} where release_ts < ${timestamptz(before)} limit ${PORTS_AT_ONCE} for update skip locked
    )) returning port`);
  return rows.length;
}

/**
 * Replaces a batch of the usage rows of servers by sums for each game, datacenter and interval. Takes rows of intervals
 * that began before a given time. A row may reach back into earlier intervals; each of them gets its share, as in
 * `selectUsage`. Returns how many rows it replaced; more may remain.
 */
export async function foldUsageBefore(tx: Tx, before: Date): Promise<number> {
  const length = sql`${INTERVAL_MS} * interval '1 ms'`;
  const [row] = await tx.execute<{ folded: number }>(sql`
    with deleted as (
      -- By ctid: rows of past intervals never change, and the planner needs no statistics for such a condition.
      delete from ${serverUsage} where ctid = any(array(
        select ctid from ${serverUsage} where interval_start < ${timestamptz(before)}
        order by interval_start limit ${USAGE_ROWS_AT_ONCE}
      ))
      returning game_id, datacenter_id, cpu_ms,
        coalesce(from_ts, interval_start) as from_ts, coalesce(until_ts, interval_start + ${length}) as until_ts
    ),
    shares as (
      select game_id, datacenter_id, step,
        cpu_ms * extract(epoch from least(until_ts, step + ${length}) - greatest(from_ts, step))
          / extract(epoch from until_ts - from_ts) as cpu_ms
      from deleted cross join lateral generate_series(
        date_bin(${length}, from_ts, timestamptz 'epoch'), until_ts - interval '1 ms', ${length}
      ) as step
    ),
    folded as (
      insert into ${gameUsage} (game_id, datacenter_id, interval_start, cpu_ms)
      select game_id, datacenter_id, step, sum(cpu_ms) from shares group by 1, 2, 3 order by 1, 2, 3
      on conflict (game_id, interval_start, datacenter_id) do update set cpu_ms = ${gameUsage}.cpu_ms + excluded.cpu_ms
    )
    select count(*)::int as folded from deleted`);
  return row?.folded ?? 0;
}

/**
 * Deletes a batch of servers that ended before a given time and that no row refers to, except the emptied chunks of their
 * logs, their samples and their meters, which it deletes too. The first server of a chain stays while another of it has
 * not ended, because its id is the one that developers know. Returns the namespaces of the servers; none if no such
 * server remains.
 */
export async function deleteServersBefore(tx: Tx, before: Date, isInUse: InUse): Promise<string[]> {
  const deleted = await tx.execute<{ server_id: string; namespace_id: string }>(sql`
    with old as materialized (
      select server_id from ${servers} where ended_at < ${timestamptz(before)}
        and not exists (select from ${serverPorts} where ${serverPorts.server_id} = ${servers.server_id})
        and not exists (select from ${serverUsage} where ${serverUsage.server_id} = ${servers.server_id})
        and not exists (
          select from ${serverLogChunks}
          where ${serverLogChunks.server_id} = ${servers.server_id} and octet_length(content) > 0
        )
        and not ${isInUse(servers.server_id)}
        and not (
          chain_id is not null and chain_id = server_id and exists (
            select from ${servers} as other where other.chain_id = ${servers.chain_id} and other.ended_at is null
          )
        )
      order by ended_at limit ${SERVERS_AT_ONCE}
    ),
    marks as (delete from ${serverLogChunks} where server_id = any(array(select server_id from old))),
    samples as (delete from ${serverSamples} where server_id = any(array(select server_id from old))),
    meters as (delete from ${serverMeters} where server_id = any(array(select server_id from old)))
    delete from ${servers} where server_id = any(array(select server_id from old))
    returning server_id, namespace_id`);
  const names = deleted.flatMap(({ server_id }) => [
    topics.server(server_id),
    topics.usage(server_id),
    ...LOG_STREAMS.map((stream) => topics.log(server_id, stream)),
  ]);
  await deleteTopics(tx, names);
  return [...new Set(deleted.map(({ namespace_id }) => namespace_id))];
}
