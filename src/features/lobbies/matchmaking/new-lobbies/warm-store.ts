import { sql } from 'drizzle-orm';
import type { Queries } from '../../../../platform/database/database.ts';
import { timestamptz } from '../../../../platform/database/moments.ts';
import { lobbies, type NamespacePool } from '../../tables.ts';

/** A condition: the lobby was created without players and has had none since. */
const IS_UNTOUCHED = sql`idle_ts = create_ts`;

/**
 * Returns a condition: the lobby is warm. It runs and is empty, no player created it, and it is open or preparing
 * (`isPreparing`).
 */
const isWarm = (closed_after: Date) => sql`
  stop_ts is null and player_count = 0 and publicity is null
  and (not is_closed or ${IS_UNTOUCHED} and (ready_ts is null or closed_ts > ${timestamptz(closed_after)}))`;

/** Returns how many warm lobbies each pool of the namespaces has; pools without any are missing. */
export async function selectWarmCounts(
  queries: Queries,
  namespace_ids: string[],
  closed_after: Date,
): Promise<(NamespacePool & { count: number })[]> {
  const rows = await queries.execute<Record<keyof NamespacePool, string> & { count: number }>(sql`
    select namespace_id, version_id, game_mode, region, count(*)::int as count from ${lobbies}
    where namespace_id = any(${sql.param(namespace_ids)}::uuid[]) and ${isWarm(closed_after)}
    group by namespace_id, version_id, game_mode, region`);
  return [...rows];
}

/** Returns the number of warm lobbies of one pool. */
export async function countWarm(queries: Queries, pool: NamespacePool, closed_after: Date): Promise<number> {
  const [row] = await queries.execute<{ count: number }>(sql`
    select count(*)::int as count from ${lobbies}
    where namespace_id = ${pool.namespace_id}::uuid and version_id = ${pool.version_id}::uuid
      and game_mode = ${pool.game_mode} and region = ${pool.region} and ${isWarm(closed_after)}`);
  return row?.count ?? 0;
}

/** A pool in which lobbies stopped by themselves before a player came. */
export type FailingPool = NamespacePool & { failures: number; last_ts: Date };

export async function selectFailing(queries: Queries, namespace_ids: string[], since: Date): Promise<FailingPool[]> {
  const rows = await queries.execute<Record<keyof NamespacePool, string> & { failures: number; last_ts: string }>(sql`
    select namespace_id, version_id, game_mode, region, count(*)::int as failures, max(stop_ts) as last_ts
    from ${lobbies}
    where namespace_id = any(${sql.param(namespace_ids)}::uuid[]) and create_ts > ${timestamptz(since)}
      and stop_reason in ('server_ended', 'not_ready_in_time') and ${IS_UNTOUCHED}
    group by namespace_id, version_id, game_mode, region`);
  return rows.map((row) => ({ ...row, last_ts: new Date(row.last_ts) }));
}
