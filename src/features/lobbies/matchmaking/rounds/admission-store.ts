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

/**
 * Returns a step `over_alone` of a statement, which has the columns `keys` of the finds from the queue that are over their
 * limit even if no other request of their client gets a seat. It follows `numberPlayers` and a step `within_limit`: the players
 * whose clients are within their limits.
 */
export function listOverAlone(keys: SQL): SQL {
  return sql`
    over_alone as (
      select ${keys} from numbered left join (
        select client_index, count(*) as players from within_limit group by client_index
      ) as coming using (client_index)
      where ticket is not null and is_count_exact and players_after > players_max
      group by ${keys}, request_number
      having max(players_before + coalesce(coming.players, 0)) + count(*) > max(players_max)
    )`;
}

/**
 * Returns an expression: the list of {@link OverLimit}, after `numberPlayers`. `seated` is the query of the players who get
 * their seats.
 */
export function listOverLimit(seated: SQL): SQL {
  return sql`(
      select coalesce(jsonb_agg(to_jsonb(over_limit)), '[]') from (
        select request_number,
          bool_and(is_count_exact) and max(players_before + coalesce(players, 0)) + count(*) > max(players_max) as is_over_alone
        from numbered left join (
          select client_index, count(*) as players from ${seated} group by client_index
        ) as counted using (client_index)
        where players_after > players_max group by request_number order by request_number
      ) as over_limit
    )`;
}
