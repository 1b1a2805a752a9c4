import { type SQL, sql } from 'drizzle-orm';
import { players } from '../../tables.ts';
import type { RequestedSeat } from './admission-store.ts';

// Each seated player has a number among the players of its client, from 1 to the client's limit. A unique index on these
// numbers enforces the limit.

/** Size of the range of a client's numbers that is searched for free ones: a base, and a part for each new player. */
const RANGE_BASE = 1_000;
const RANGE_FOR_EACH = 4;
/** The highest number of the column's type. */
const HIGHEST = 2_147_483_647;

/** A condition: the player is seated, and so has a number. The index `players_of_client` has the same condition. */
export const HAS_NUMBER = sql`remove_ts is null and client_number > 0`;

/** Lists about the clients of proposed players. */
export interface ClientLists {
  /** For each client: its namespace. */
  client_namespace_id: string[];
  /** For each client: its name. */
  client: string[];
  /** For each client: the lowest limit of its proposed players. */
  client_players_max: number[];
  /** For each client: how many players are proposed. */
  new_players: number[];
  /** For each client: the first of the numbers that are searched. */
  lowest: number[];
  /** For each client: the last of the numbers that are searched. */
  highest: number[];
  /** For each client: how many numbers up to its limit are not searched. They count as taken. */
  unsearched: number[];
  /** For each player: the position of its client in these lists, from 1. */
  client_index: number[];
  /** For each player: its position among the proposed players of its client, from 1. */
  nth_of_client: number[];
  /** For each player: how many players are proposed for its client, up to the end of the player's request. */
  through_request: number[];
}

type Proposed = Pick<RequestedSeat, 'client' | 'players_max' | 'request_number'> & { namespace_id: string };

/**
 * Lists the clients of proposed players, who are in the order of their requests. With `range_fraction` null, all numbers of a
 * client are searched, which is exact under the lock of the namespace's list of lobbies. Otherwise it is from 0 to 1, and
 * selects the part of the numbers that is searched for a client that may have very many players.
 */
export function listClients(proposed: readonly Proposed[], range_fraction: number | null): ClientLists {
  const clients = new Map<string, Omit<Proposed, 'request_number'> & { index: number; new_players: number }>();
  const positions = proposed.map(({ namespace_id, client: name, players_max, request_number }) => {
    const key = `${namespace_id} ${name}`;
    const index = clients.size + 1;
    const client = clients.get(key) ?? { namespace_id, client: name, players_max, index, new_players: 0 };
    clients.set(key, client);
    client.players_max = Math.min(client.players_max, players_max);
    client.new_players += 1;
    return { client_index: client.index, nth_of_client: client.new_players, request_number };
  });
  const last_of_request = new Map(
    positions.map(({ request_number, nth_of_client }) => [request_number, nth_of_client]),
  );
  const all = [...clients.values()];
  const ranges = all.map((client) => rangeOf(client, range_fraction));
  return {
    client_namespace_id: all.map(({ namespace_id }) => namespace_id),
    client: all.map(({ client }) => client),
    client_players_max: all.map(({ players_max }) => players_max),
    new_players: all.map(({ new_players }) => new_players),
    lowest: ranges.map(({ lowest }) => lowest),
    highest: ranges.map(({ highest }) => highest),
    unsearched: ranges.map(({ unsearched }) => unsearched),
    client_index: positions.map(({ client_index }) => client_index),
    nth_of_client: positions.map(({ nth_of_client }) => nth_of_client),
    through_request: positions.map(({ request_number }) => last_of_request.get(request_number) ?? 0),
  };
}

/** Returns the range of a client's numbers that is searched: all of them, or a part if the client may have very many. */
function rangeOf({ players_max, new_players }: { players_max: number; new_players: number }, fraction: number | null) {
  const size = RANGE_BASE + RANGE_FOR_EACH * new_players;
  // Numbers above the limit are left from before it was lowered.
  if (fraction === null || size >= players_max) return { lowest: 1, highest: HIGHEST, unsearched: 0 };
  const unsearched = players_max - size;
  const lowest = 1 + Math.floor(fraction * unsearched);
  return { lowest, highest: lowest + size - 1, unsearched };
}

/**
 * Returns steps of a statement that has a step `proposed`, with the lists for each player of {@link listClients} as columns.
 * `value` returns these lists. The last step is `numbered`, which adds to each proposed player:
 *
 * - `client_number`: a free number of its client
 * - `players_before`: how many players the client has
 * - `players_after`: how many it has if all of its requests up to the player's get their seats
 * - `is_count_exact`: false if these counts may be too high, because not all numbers were searched
 */
export function numberPlayers(value: (name: keyof ClientLists) => SQL): SQL {
  const is_of_client = sql`seated.namespace_id = of_client.namespace_id and seated.client = of_client.client and ${HAS_NUMBER}`;
  return sql`
    clients as materialized (
      select client_index, lowest, unsearched = 0 as is_count_exact,
        case when unsearched > 0 and exists (select from ${players} as seated where ${is_of_client} and client_number > players_max)
          then ${sql.raw(String(HIGHEST))} else unsearched + coalesce(cardinality(numbers), 0) end as players_before,
        case when numbers is not null then array(
          select generate_series(lowest, lowest + cardinality(numbers) + new_players - 1) except select unnest(numbers) order by 1
        ) end as free
      from unnest(
        ${value('client_namespace_id')}::uuid[], ${value('client')}::text[], ${value('client_players_max')}::int[],
        ${value('new_players')}::int[], ${value('lowest')}::int[], ${value('highest')}::int[], ${value('unsearched')}::int[]
      ) with ordinality
        as of_client (namespace_id, client, players_max, new_players, lowest, highest, unsearched, client_index)
      cross join lateral (
        select array_agg(client_number) as numbers from ${players} as seated
        where ${is_of_client} and client_number between lowest and highest
      ) as found
    ),
    numbered as (
      select proposed.*, is_count_exact, players_before, players_before::bigint + through_request as players_after,
        coalesce(free[nth_of_client], lowest + nth_of_client - 1) as client_number
      from proposed join clients using (client_index)
    )`;
}
