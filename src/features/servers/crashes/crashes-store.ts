import { and, desc, eq, gte, sql } from 'drizzle-orm';
import type { Queries } from '../../../platform/database/database.ts';
import { timestamptz } from '../../../platform/database/moments.ts';
import type { ServerScope } from '../store.ts';
import { HAS_CRASHED, type ServerRow, servers } from '../tables.ts';

const GROUPS_MAX = 10;

/** Servers that crashed in the same way, and the last of them. */
export interface CrashGroup extends Pick<ServerRow, 'exit_code' | 'exit_signal' | 'failure'> {
  count: number;
  last_server_id: string;
  last_ended_at: Date;
}

/** Returns how servers of an environment crashed since a given time, the latest first. */
export async function selectCrashes(
  queries: Queries,
  { game_id, namespace_id }: ServerScope,
  since: Date,
): Promise<CrashGroup[]> {
  const { exit_code, exit_signal, failure, server_id, ended_at } = servers;
  const last_ended_at = sql<Date>`max(${ended_at})`.mapWith(ended_at);
  return await queries
    .select({
      exit_code,
      exit_signal,
      failure,
      count: sql<number>`count(*)::int`,
      last_server_id: sql<string>`(array_agg(${server_id} order by ${ended_at} desc))[1]`,
      last_ended_at,
    })
    .from(servers)
    .where(
      and(
        eq(servers.game_id, game_id),
        eq(servers.namespace_id, namespace_id),
        gte(ended_at, sql`${timestamptz(since)}`),
        HAS_CRASHED,
      ),
    )
    .groupBy(exit_code, exit_signal, failure)
    .orderBy(desc(last_ended_at))
    .limit(GROUPS_MAX);
}
