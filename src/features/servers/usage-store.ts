import { and, gte, inArray, lt, sql } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import { at } from '../../platform/database/moments.ts';
import { serverMeters, servers, serverUsage } from './tables.ts';

/** What a server has used since it was started. */
export interface Reading {
  server_id: string;
  cpu_ms: number;
}

/**
 * Adds to an interval what servers used since they were last looked at, in one statement: a reading that is told twice
 * adds nothing.
 */
export async function addReadings(queries: Queries, readings: Reading[], interval_start: Date): Promise<void> {
  const column = (key: keyof Reading) => sql.param(readings.map((reading) => reading[key]));
  await queries.execute(sql`
    with read as (
      select * from unnest(${column('server_id')}::uuid[], ${column('cpu_ms')}::bigint[]) as reading (server_id, cpu_ms)
    ),
    used as (
      select read.server_id, read.cpu_ms - coalesce(before.cpu_ms, 0) as cpu_ms
      from read left join ${serverMeters} as before on before.server_id = read.server_id
      where read.cpu_ms > coalesce(before.cpu_ms, 0)
    ),
    metered as (
      insert into ${serverMeters} (server_id, cpu_ms)
      select read.server_id, read.cpu_ms from read join used on used.server_id = read.server_id
      on conflict (server_id) do update set cpu_ms = excluded.cpu_ms
    )
    insert into ${serverUsage} (server_id, interval_start, game_id, datacenter_id, cpu_ms)
    select used.server_id, ${at(interval_start)}, server.game_id, server.datacenter_id, used.cpu_ms
    from used join ${servers} as server on server.server_id = used.server_id
    on conflict (server_id, interval_start) do update set cpu_ms = ${serverUsage}.cpu_ms + excluded.cpu_ms`);
}

/** By game and datacenter, of the intervals that start within a window. */
export async function selectUsage(queries: Queries, game_ids: string[], { start, end }: { start: Date; end: Date }) {
  const { game_id, datacenter_id, interval_start, cpu_ms } = serverUsage;
  return await queries
    .select({ game_id, datacenter_id, cpu_ms: sql<number>`sum(${cpu_ms})::float8` })
    .from(serverUsage)
    .where(and(inArray(game_id, game_ids), gte(interval_start, start), lt(interval_start, end)))
    .groupBy(game_id, datacenter_id)
    .orderBy(game_id, datacenter_id);
}
