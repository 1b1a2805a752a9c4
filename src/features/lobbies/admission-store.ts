import { type SQL, sql } from 'drizzle-orm';
import type { DedicatedConnection } from '../../platform/database/dedicated-connection.ts';
import { createStatement } from '../../platform/database/statement.ts';
import { clientCounts, queuedFinds } from './tables.ts';

// Parts of the statements that give seats, in running and in new lobbies: which requests are within their client's limit.

/** A seat that is wanted. */
export interface Claim {
  player_id: string;
  address: string;
  client: string;
  /** How many players the client may have in the namespace. */
  players_max: number;
  /** The number of the request, in order of arrival: all seats of one request are given, or none. */
  party: number;
  /** Set for a find that waits in the queue. */
  ticket: string | null;
}

/** A request that got no seats because its client would be over its limit. */
export interface OverLimit {
  party: number;
  /** Whether it would be by this request alone; else together with others of the round. */
  is_over_alone: boolean;
}

const OVER_LIMIT = createStatement<Record<'namespace_id' | 'client' | 'players_max' | 'party', unknown[]>>(
  (value) => sql`
    select party from (
      select namespace_id, client, party, count(*) as players, max(players_max) as players_max
      from unnest(
        ${value('namespace_id')}::uuid[], ${value('client')}::text[], ${value('players_max')}::int[], ${value('party')}::int[]
      ) as seat (namespace_id, client, players_max, party)
      group by namespace_id, client, party
    ) as own left join ${clientCounts} using (namespace_id, client)
    where coalesce(player_count, 0) + players > own.players_max order by party`,
);

/**
 * Returns the requests that are over their client's limit alone, before anything is locked, taken or announced: a client
 * that asks again and again in vain wakes nobody.
 */
export async function selectOverLimit(
  connection: DedicatedConnection,
  claims: (Pick<Claim, 'client' | 'players_max' | 'party'> & { namespace_id: string })[],
): Promise<OverLimit[]> {
  if (claims.length === 0) return [];
  const column = (key: keyof (typeof claims)[number]) => claims.map((claim) => claim[key]);
  const lists = {
    namespace_id: column('namespace_id'),
    client: column('client'),
    players_max: column('players_max'),
    party: column('party'),
  };
  const rows = await connection.execute<{ party: number }>(OVER_LIMIT(lists));
  return rows.map(({ party }) => ({ party, is_over_alone: true }));
}

/** After all places in the queue. */
export const LAST_PLACE = sql`9223372036854775807::bigint`;

/**
 * Common table expressions that divide `proposed`. `admitted`: within their client's limit, counted in their order.
 * `passed`: over the limit whatever becomes of the others. The counts stay locked until the end of the transaction.
 */
export const ADMIT = sql`
  held as (
    select namespace_id, client, player_count from ${clientCounts}
    where (namespace_id, client) in (select namespace_id, client from proposed)
    for update
  ),
  reckoned as (
    select proposed.*, coalesce(player_count, 0) as players_before,
      coalesce(player_count, 0) + count(*) over (partition by namespace_id, client order by party) as players_then
    from proposed left join held using (namespace_id, client)
  ),
  admitted as (select * from reckoned where players_then <= players_max),
  passed as (
    select reckoned.*
    from reckoned left join (
      select namespace_id, client, count(*) as players from admitted group by namespace_id, client
    ) as coming using (namespace_id, client)
    join (select party, count(*) as players from proposed group by party) as own using (party)
    where players_then > players_max and players_before + coalesce(coming.players, 0) + own.players > players_max
  )`;

/**
 * Counts the players of a common table expression, who are seated in the same statement. `playersMax` makes one limit of
 * those of their requests.
 */
export function countClients(seated: SQL, playersMax = sql`max(players_max)`): SQL {
  return sql`
    insert into ${clientCounts} (namespace_id, client, player_count, player_max)
    select namespace_id, client, count(*)::int, ${playersMax} from ${seated} group by namespace_id, client
    on conflict (namespace_id, client) do update set
      player_count = ${clientCounts}.player_count + excluded.player_count, player_max = excluded.player_max
    returning namespace_id, client, player_count`;
}

/** The requests that were not admitted, after those that were have been `counted`. */
export const OVER_LIMITS = sql`
  select coalesce(jsonb_agg(to_jsonb(over_limit)), '[]') from (
    select party,
      coalesce(max(counted.player_count), max(held.player_count), 0) + count(*) > max(players_max) as is_over_alone
    from reckoned left join held using (namespace_id, client) left join counted using (namespace_id, client)
    where players_then > players_max group by party order by party
  ) as over_limit`;

/**
 * Whether a find in the queue could ever sit in a lobby, so that no later one gets a seat there before it. While the
 * namespace moves to another version, the row may still hold the search of the old one: then all regions count, because the
 * version recommends one where the player names none.
 */
export function waitsFor(
  lobby: Record<'namespace_id' | 'version_id' | 'game_mode' | 'region' | 'tags', SQL>,
  most: SQL,
): SQL {
  return sql`
    waiting.namespace_id = ${lobby.namespace_id} and ${lobby.game_mode} = any(waiting.game_modes)
      and (waiting.version_id <> ${lobby.version_id} or ${lobby.region} = any(waiting.regions))
      and ${lobby.tags} @> waiting.tags and waiting.seats <= ${most}`;
}

/** Removes finds from the queue by their tickets. */
export function leaveQueue(tickets: SQL, namespace_ids: SQL): SQL {
  return sql`delete from ${queuedFinds} where namespace_id = any(${namespace_ids}::uuid[]) and ticket in ${tickets}`;
}
