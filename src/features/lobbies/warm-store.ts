import { sql } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import { timestamptz } from '../../platform/database/moments.ts';
import { type LobbyRow, lobbies } from './tables.ts';

/** Lobbies of one version, game mode and region of a namespace. */
export type NamespaceShelf = Pick<LobbyRow, 'namespace_id' | 'version_id' | 'game_mode' | 'region'>;

/** Lobbies that were made for nobody yet, and that nobody has come to. */
const IS_UNTOUCHED = sql`idle_ts = create_ts`;

/**
 * Lobbies of a shelf that a find would come to, and that nobody sits in, whether they are ready or not; also those that
 * their servers have closed before anybody came, while they prepare themselves.
 */
const IS_IDLE = sql`stop_ts is null and player_count = 0 and publicity is null and (not is_closed or ${IS_UNTOUCHED})`;

/** How many idle lobbies each shelf of the namespaces has; those that have none are not there. */
export async function selectIdleCounts(
  queries: Queries,
  namespace_ids: string[],
): Promise<(NamespaceShelf & { count: number })[]> {
  const rows = await queries.execute<Record<keyof NamespaceShelf, string> & { count: number }>(sql`
    select namespace_id, version_id, game_mode, region, count(*)::int as count from ${lobbies}
    where namespace_id = any(${sql.param(namespace_ids)}::uuid[]) and ${IS_IDLE}
    group by namespace_id, version_id, game_mode, region`);
  return [...rows];
}

/** The idle lobbies of one shelf. */
export async function countIdle(queries: Queries, shelf: NamespaceShelf): Promise<number> {
  const [row] = await queries.execute<{ count: number }>(sql`
    select count(*)::int as count from ${lobbies}
    where namespace_id = ${shelf.namespace_id}::uuid and version_id = ${shelf.version_id}::uuid
      and game_mode = ${shelf.game_mode} and region = ${shelf.region} and ${IS_IDLE}`);
  return row?.count ?? 0;
}

/** A shelf whose lobbies ended by themselves before anybody came, since a moment. */
export type FailingShelf = NamespaceShelf & { failures: number; last_ts: Date };

export async function selectFailing(queries: Queries, namespace_ids: string[], since: Date): Promise<FailingShelf[]> {
  const rows = await queries.execute<Record<keyof NamespaceShelf, string> & { failures: number; last_ts: string }>(sql`
    select namespace_id, version_id, game_mode, region, count(*)::int as failures, max(stop_ts) as last_ts
    from ${lobbies}
    where namespace_id = any(${sql.param(namespace_ids)}::uuid[]) and create_ts > ${timestamptz(since)}
      and stop_reason in ('server_ended', 'not_ready_in_time') and ${IS_UNTOUCHED}
    group by namespace_id, version_id, game_mode, region`);
  return rows.map((row) => ({ ...row, last_ts: new Date(row.last_ts) }));
}
