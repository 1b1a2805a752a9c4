import { type SQL, sql } from 'drizzle-orm';
import { players } from '../tables.ts';

// Each seated player has a number among the players of its client, from 1 to the client's limit. A unique index on these
// numbers enforces the limit.

/** Size of the range of a client's numbers that is searched for free ones: a base, and a part for each new player. */
const RANGE = { base: sql.raw('1000'), for_each: sql.raw('4') };
const HIGHEST = sql.raw('2147483647');

/** A condition: the player is seated, and so has a number. The index `players_of_client` has the same condition. */
export const HAS_NUMBER = sql`remove_ts is null and client_number > 0`;

/** The numbers of a client's seated players. */
const NUMBERS = sql`
  select client_number from ${players} as seated
  where seated.namespace_id = of_client.namespace_id and seated.client = of_client.client and ${HAS_NUMBER}`;

/**
 * Returns common table expressions, the last of which is `numbered`: the seats of `proposed` with a free number for each, as
 * `client_number`, and with the players of the client, counted in the order of the requests.
 *
 * `range_fraction` is null for an exact search, which needs the lock of the namespace's list of lobbies. Otherwise it is
 * from 0 to 1 and selects the range that is searched, for a client that may have very many players; numbers outside count
 * as taken. `is_count_exact` is false if the count may be too high for this reason, or because the limit was lowered.
 */
export function numberPlayers(range_fraction: SQL): SQL {
  const is_exact = sql`${range_fraction}::float8 is null`;
  return sql`
    taken_numbers as materialized (
      select of_client.*, range_size, lowest,
        array(${NUMBERS} and client_number between lowest and case when ${is_exact} then ${HIGHEST} else lowest + range_size - 1 end) as numbers,
        not ${is_exact} and exists (${NUMBERS} and client_number > players_max) as has_numbers_above
      from (
        select namespace_id, client, count(*)::int as new_players, min(players_max) as players_max
        from proposed group by namespace_id, client
      ) as of_client
      cross join lateral (
        select case when ${is_exact} then players_max
          else least(players_max, ${RANGE.base} + ${RANGE.for_each} * new_players) end as range_size
      ) as of_part
      cross join lateral (
        select 1 + floor(coalesce(${range_fraction}::float8, 0) * (players_max - range_size))::int as lowest
      ) as of_fraction
    ),
    clients as materialized (
      select namespace_id, client, lowest, range_size = players_max and not has_numbers_above as is_count_exact,
        case when has_numbers_above then ${HIGHEST} else players_max - range_size + cardinality(numbers) end as players_before,
        case when cardinality(numbers) > 0 then array(
          select generate_series(lowest, lowest + cardinality(numbers) + new_players - 1) except select unnest(numbers) order by 1
        ) end as free
      from taken_numbers
    ),
    numbered as (
      select proposed.*, is_count_exact, players_before, players_before + count(*) over of_client as players_after,
        coalesce(free[row_number() over of_client], lowest + row_number() over of_client - 1) as client_number
      from proposed join clients using (namespace_id, client)
      window of_client as (partition by namespace_id, client order by request_number)
    )`;
}
