import { sql } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import { timestamptz } from '../../platform/database/moments.ts';
import { gameUsage, INTERVAL_MS, serverMeters, servers, serverUsage } from './tables.ts';

/** What a server has used since it was started. */
export interface Reading {
  server_id: string;
  cpu_ms: number;
}

/** When servers were looked at, and the interval that counts it. */
interface ReadAt {
  now: Date;
  /** When this process looked at all of them before; undefined the first time. */
  before: Date | undefined;
  interval_start: Date;
}

/**
 * Adds to an interval what servers used since they were last looked at, and in which time, in one statement: a reading that
 * is told twice adds nothing. A server that used nothing writes nothing, so the time before counts by `before`.
 */
export async function addReadings(
  queries: Queries,
  readings: Reading[],
  { now, before, interval_start }: ReadAt,
): Promise<void> {
  const column = (key: keyof Reading) => sql.param(readings.map((reading) => reading[key]));
  await queries.execute(sql`
    with read as (
      select * from unnest(${column('server_id')}::uuid[], ${column('cpu_ms')}::bigint[]) as reading (server_id, cpu_ms)
    ),
    used as (
      select read.server_id, read.cpu_ms - coalesce(before.cpu_ms, 0) as cpu_ms, before.read_ts
      from read left join ${serverMeters} as before on before.server_id = read.server_id
      where read.cpu_ms > coalesce(before.cpu_ms, 0)
    ),
    metered as (
      insert into ${serverMeters} (server_id, cpu_ms, read_ts)
      select read.server_id, read.cpu_ms, ${timestamptz(now)} from read join used on used.server_id = read.server_id
      on conflict (server_id) do update set cpu_ms = excluded.cpu_ms, read_ts = excluded.read_ts
    )
    insert into ${serverUsage} (server_id, interval_start, game_id, datacenter_id, cpu_ms, from_ts, until_ts)
    select used.server_id, ${timestamptz(interval_start)}, server.game_id, server.datacenter_id, used.cpu_ms,
      least(greatest(used.read_ts, server.started_at, ${before ? timestamptz(before) : sql`null`}), ${timestamptz(now)} - interval '1 ms'), ${timestamptz(now)}
    from used join ${servers} as server on server.server_id = used.server_id
    on conflict (server_id, interval_start) do update set
      cpu_ms = ${serverUsage}.cpu_ms + excluded.cpu_ms,
      from_ts = least(coalesce(${serverUsage}.from_ts, ${serverUsage}.interval_start), excluded.from_ts),
      until_ts = excluded.until_ts`);
}

/** What each of these servers had used when it was last read. */
export async function selectMeters(queries: Queries, server_ids: string[]): Promise<Map<string, number>> {
  const rows = await queries
    .select()
    .from(serverMeters)
    .where(sql`${serverMeters.server_id} = any(${sql.param(server_ids)}::uuid[])`);
  return new Map(rows.map(({ server_id, cpu_ms }) => [server_id, cpu_ms]));
}

/**
 * By game and datacenter: of each interval the share that lies in a window, as if its time was used evenly. Of servers that
 * have been removed there is only the sum of an interval.
 */
export async function selectUsage(queries: Queries, game_ids: string[], { start, end }: { start: Date; end: Date }) {
  const length = sql`${INTERVAL_MS} * interval '1 ms'`;
  const inside = sql`extract(epoch from least(until_ts, ${timestamptz(end)}) - greatest(from_ts, ${timestamptz(start)}))`;
  // For the indexes: no time reaches beyond its interval.
  const of_games = sql`game_id = any(${sql.param(game_ids)}::uuid[]) and interval_start > ${timestamptz(start)} - ${length}`;
  const rows = await queries.execute<{ game_id: string; datacenter_id: string; cpu_ms: number }>(sql`
    with used as (
      select game_id, datacenter_id, cpu_ms,
        coalesce(from_ts, interval_start) as from_ts, coalesce(until_ts, interval_start + ${length}) as until_ts
      from ${serverUsage} where ${of_games}
      union all
      select game_id, datacenter_id, cpu_ms, interval_start, interval_start + ${length}
      from ${gameUsage} where ${of_games}
    )
    select game_id, datacenter_id,
      round(sum(cpu_ms * least(${inside} / extract(epoch from until_ts - from_ts), 1)))::float8 as cpu_ms
    from used where until_ts > ${timestamptz(start)} and from_ts < ${timestamptz(end)}
    group by game_id, datacenter_id order by game_id, datacenter_id`);
  return [...rows];
}
