import { type SQL, sql } from 'drizzle-orm';
import { queuedFinds } from '../../tables.ts';

// Parts that the statements for seats in running and in new lobbies share.

/** A requested seat. */
export interface RequestedSeat {
  player_id: string;
  address: string;
  client: string;
  /** How many players the client may have in the namespace. */
  players_max: number;
  /**
   * The index of the request among those of the statement, in the order of the plan. All seats of one request are
   * given, or none.
   */
  request_number: number;
  /** Set for a find that waits in the queue. */
  ticket: string | null;
}

/** A request that got no seats because its client would be over its limit. */
export interface OverLimit {
  request_number: number;
  /** Whether this request alone exceeds the limit; otherwise it does together with others of the round. */
  is_over_alone: boolean;
}

/** The place after all others in the queue. */
export const LAST_PLACE = sql`9223372036854775807::bigint`;

/**
 * Returns a condition: a find in the queue could ever get its seats in a lobby, so that no later one may get them before
 * it. While the namespace moves to another version, the row may still hold the search of the old one: then all regions
 * count, because the version recommends one where the player names none.
 */
export function waitsFor(
  lobby: Record<'namespace_id' | 'version_id' | 'game_mode' | 'region' | 'tags', SQL>,
  seats_max: SQL,
): SQL {
  return sql`
    waiting.namespace_id = ${lobby.namespace_id} and ${lobby.game_mode} = any(waiting.game_modes)
      and (waiting.version_id <> ${lobby.version_id} or ${lobby.region} = any(waiting.regions))
      and ${lobby.tags} @> waiting.tags and waiting.seats <= ${seats_max}`;
}

/** Removes the finds from the queue that a query `(namespace_id, ticket)` names. */
export function leaveQueue(finds: SQL): SQL {
  return sql`delete from ${queuedFinds} where (namespace_id, ticket) in (${finds})`;
}
