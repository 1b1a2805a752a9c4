import { and, eq, isNull, type SQL, sql } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import { at } from '../../platform/database/moments.ts';
import { CHANGES_CHANNEL, raiseVersions } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { lobbies, type PlayerRow, players, type RemoveReason } from './tables.ts';

const NAMESPACES_MAX = 1_000;

export async function selectPlayer(queries: Queries, player_id: string): Promise<PlayerRow | undefined> {
  const [row] = await queries.select().from(players).where(eq(players.player_id, player_id));
  return row;
}

/** Notes that a player has connected: once, to his own lobby, in time, while he has his seat (I-M3). */
export async function setConnected(
  queries: Queries,
  { player_id, lobby_id }: { player_id: string; lobby_id: string },
  now: Date,
): Promise<boolean> {
  const rows = await queries
    .update(players)
    .set({ connect_ts: now })
    .where(
      and(
        eq(players.player_id, player_id),
        eq(players.lobby_id, lobby_id),
        isNull(players.connect_ts),
        isNull(players.remove_ts),
        sql`(${players.seat_deadline_ts} is null or ${players.seat_deadline_ts} > ${at(now)})`,
      ),
    )
    .returning({ player_id: players.player_id });
  return rows.length > 0;
}

/**
 * Removes the players of a namespace that a condition names and gives their seats back, each once (I-M2): a player is
 * removed by one statement only. Gives how many they were, and the lobbies that nobody sits in now.
 */
export async function removePlayers(
  queries: Queries,
  namespace_id: string,
  condition: SQL,
  { reason, now }: { reason: RemoveReason; now: Date },
): Promise<{ removed: number; emptied: number }> {
  const [row] = await queries.execute<{ removed: string; emptied: string }>(sql`
    with ${raiseVersions([topics.lobbiesOf(namespace_id)])},
    told as (
      select topic, version, pg_notify(${CHANGES_CHANNEL}, version || ' ' || topic) from raised
    ),
    gone as (
      update ${players} set remove_ts = ${at(now)}, remove_reason = ${reason}
      where namespace_id = ${namespace_id}::uuid and remove_ts is null and ${condition}
        and (select count(*) from told) > 0
      returning lobby_id
    ),
    freed as (
      update ${lobbies} set
        player_count = player_count - seats,
        idle_ts = case when player_count = seats then ${at(now)} else idle_ts end,
        changed = (select version from told)
      from (select lobby_id, count(*) as seats from gone group by lobby_id) as left_by
      where ${lobbies.lobby_id} = left_by.lobby_id
      returning player_count
    )
    select (select count(*) from gone) as removed, (select count(*) from freed where player_count = 0) as emptied`);
  return { removed: Number(row?.removed ?? 0), emptied: Number(row?.emptied ?? 0) };
}

export const isPlayer = (player_id: string): SQL => sql`player_id = ${player_id}::uuid`;

/** His seat was kept for him long enough. */
export const isAwaitedInVain = (now: Date): SQL => sql`connect_ts is null and seat_deadline_ts <= ${at(now)}`;

/** He has been there so long that his lobby must have forgotten to say that he left. */
export const isOverdue = (created_before: Date): SQL => sql`create_ts <= ${at(created_before)}`;

/** Namespaces in which players meet a condition. */
export async function selectNamespacesWith(queries: Queries, condition: SQL): Promise<string[]> {
  const rows = await queries.execute<{ namespace_id: string }>(sql`
    select distinct namespace_id from ${players} where remove_ts is null and ${condition}
    order by namespace_id limit ${NAMESPACES_MAX}`);
  return rows.map(({ namespace_id }) => namespace_id);
}
