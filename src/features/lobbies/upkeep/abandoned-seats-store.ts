import { and, isNull } from 'drizzle-orm';
import type { Queries } from '../../../platform/database/database.ts';
import { isAnyOf } from '../../../platform/database/lists.ts';
import { type PlayerRow, players } from '../tables.ts';

/** Names the seat of a player, which may or may not be committed. */
export type SeatKey = Pick<PlayerRow, 'player_id' | 'namespace_id'>;

/** Returns which of the players have a seat. */
export async function selectCommittedSeats(queries: Queries, player_ids: string[]): Promise<SeatKey[]> {
  const { player_id, namespace_id } = players;
  return await queries
    .select({ player_id, namespace_id })
    .from(players)
    .where(and(isAnyOf(player_id, player_ids), isNull(players.remove_ts)))
    .orderBy(player_id)
    .limit(player_ids.length);
}
