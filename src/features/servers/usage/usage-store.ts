import { sql } from 'drizzle-orm';
import type { Queries } from '../../../platform/database/database.ts';
import { timestamptz } from '../../../platform/database/moments.ts';
import { gameUsage, INTERVAL_MS, serverMeters, servers, serverUsage } from '../tables.ts';

/** The processor time that a server has used since its start. */
export interface ProcessorReading {
  server_id: string;
  cpu_ms: number;
}

/** When servers were read, and the interval that the readings belong to. */
interface ReadAt {
  now: Date;
  /** When this process took its previous reading; undefined if it is the first. */
  previous_read_ts: Date | undefined;
  interval_start: Date;
}

/**
 * Adds to an interval what servers have used since their previous reading, and the time in which they used it. It is one
 * statement, so a repeated reading adds nothing. It also adds nothing if another transaction has stored a reading of the
 * server meanwhile: the next reading adds the rest. A server that used nothing has no new row in `server_meters`;
 * `previous_read_ts` gives the time of its previous reading then.
 */
export async function addReadings(
  queries: Queries,
  readings: ProcessorReading[],
  { now, previous_read_ts, interval_start }: ReadAt,
): Promise<void> {
  const column = (key: keyof ProcessorReading) => sql.param(readings.map((reading) => reading[key]));
  await queries.execute(sql`
    with used as (
      select read.server_id, read.cpu_ms - coalesce(before.cpu_ms, 0) as cpu_ms, before.cpu_ms as before_ms, before.read_ts
      from unnest(${column('server_id')}::uuid[], ${column('cpu_ms')}::bigint[]) as read (server_id, cpu_ms)
      left join ${serverMeters} as before on before.server_id = read.server_id
      where read.cpu_ms > coalesce(before.cpu_ms, 0)
    ),
    metered as (
      insert into ${serverMeters} (server_id, cpu_ms, read_ts)
      select server_id, coalesce(before_ms, 0) + cpu_ms, ${timestamptz(now)} from used order by server_id
      on conflict (server_id) do update set cpu_ms = excluded.cpu_ms, read_ts = excluded.read_ts
        -- Otherwise a reading was committed after this statement began, and a part of this one is counted already.
        where ${serverMeters}.cpu_ms = (select before_ms from used where used.server_id = excluded.server_id)
      returning server_id
    )
    insert into ${serverUsage} (server_id, interval_start, game_id, datacenter_id, cpu_ms, from_ts, until_ts)
    select used.server_id, ${timestamptz(interval_start)}, server.game_id, server.datacenter_id, used.cpu_ms,
      least(greatest(used.read_ts, server.started_at, ${previous_read_ts ? timestamptz(previous_read_ts) : sql`null`}), ${timestamptz(now)} - interval '1 ms'), ${timestamptz(now)}
    from used join metered on metered.server_id = used.server_id join ${servers} as server on server.server_id = used.server_id
    on conflict (server_id, interval_start) do update set
      cpu_ms = ${serverUsage}.cpu_ms + excluded.cpu_ms,
      from_ts = least(coalesce(${serverUsage}.from_ts, ${serverUsage}.interval_start), excluded.from_ts),
      until_ts = excluded.until_ts`);
}

/** Returns the latest readings of servers. */
export async function selectMeters(queries: Queries, server_ids: string[]): Promise<Map<string, number>> {
  const rows = await queries
    .select()
    .from(serverMeters)
    .where(sql`${serverMeters.server_id} = any(${sql.param(server_ids)}::uuid[])`);
  return new Map(rows.map(({ server_id, cpu_ms }) => [server_id, cpu_ms]));
}

/**
 * Returns usage within a window by game and datacenter. A row that lies partly in the window counts by its share, as if
 * the time had been used evenly. Removed servers count by the sums of their games.
 */
export async function selectUsage(queries: Queries, game_ids: string[], { start, end }: { start: Date; end: Date }) {
  const length = sql`${INTERVAL_MS} * interval '1 ms'`;
  const inside = sql`extract(epoch from least(until_ts, ${timestamptz(end)}) - greatest(from_ts, ${timestamptz(start)}))`;
  // Lets the indexes find the rows: a row ends within its interval, though it may begin before it.
  const is_of_games = sql`game_id = any(${sql.param(game_ids)}::uuid[]) and interval_start > ${timestamptz(start)} - ${length}`;
  const rows = await queries.execute<{ game_id: string; datacenter_id: string; cpu_ms: number }>(sql`
    with used as (
      select game_id, datacenter_id, cpu_ms,
        coalesce(from_ts, interval_start) as from_ts, coalesce(until_ts, interval_start + ${length}) as until_ts
      from ${serverUsage} where ${is_of_games}
      union all
      select game_id, datacenter_id, cpu_ms, interval_start, interval_start + ${length}
      from ${gameUsage} where ${is_of_games}
    )
    select game_id, datacenter_id,
      round(sum(cpu_ms * least(${inside} / extract(epoch from until_ts - from_ts), 1)))::float8 as cpu_ms
    from used where until_ts > ${timestamptz(start)} and from_ts < ${timestamptz(end)}
    group by game_id, datacenter_id order by game_id, datacenter_id`);
  return [...rows];
}
