import { type SQL, sql } from 'drizzle-orm';
import type { DedicatedConnection } from '../../platform/database/dedicated-connection.ts';
import { createStatement } from '../../platform/database/statement.ts';
import { clientCounts, queuedFinds } from './tables.ts';

// Who of those that want seats may have them: parts of the statements that give seats, in lobbies there are and in new ones.

/** A seat that somebody is to have. */
export interface Claim {
  player_id: string;
  address: string;
  client: string;
  /** How many players his client may have in the namespace. */
  players_max: number;
  /** The number of his request: all seats of one are given, or none. Who asked first has the lower one. */
  party: number;
  /** Of a find that waits for its turn. */
  ticket: string | null;
}

/** A request that got no seats because its client has too many: `is_over` by itself, else together with others of the round. */
export interface Crowded {
  party: number;
  is_over: boolean;
}

const OVER = createStatement<Record<'namespace_id' | 'client' | 'players_max' | 'party', unknown[]>>(
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
 * The requests that have too many players by themselves, before anything is locked, taken or told of: whoever asks again
 * and again in vain is no news to anybody.
 */
export async function selectOver(
  connection: DedicatedConnection,
  claims: (Pick<Claim, 'client' | 'players_max' | 'party'> & { namespace_id: string })[],
): Promise<Crowded[]> {
  if (claims.length === 0) return [];
  const column = (key: keyof (typeof claims)[number]) => claims.map((claim) => claim[key]);
  const lists = {
    namespace_id: column('namespace_id'),
    client: column('client'),
    players_max: column('players_max'),
    party: column('party'),
  };
  const rows = await connection.execute<{ party: number }>(OVER(lists));
  return rows.map(({ party }) => ({ party, is_over: true }));
}

/** After all places that there are. */
export const LAST_PLACE = sql`9223372036854775807::bigint`;

/**
 * The common table expressions that say of `proposed` which are `admitted`: those by whom their client is not above its
 * maximum, counted in their order; and which are `passed`: those who have too many players whatever becomes of the others.
 * The counts are held until the end of the transaction.
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
 * Counts players of the common table expression that is named: they are seated in the same statement. `playersMax` makes
 * one maximum of those of their requests.
 */
export function countClients(seated: SQL, playersMax = sql`max(players_max)`): SQL {
  return sql`
    insert into ${clientCounts} (namespace_id, client, player_count, player_max)
    select namespace_id, client, count(*)::int, ${playersMax} from ${seated} group by namespace_id, client
    on conflict (namespace_id, client) do update set
      player_count = ${clientCounts}.player_count + excluded.player_count, player_max = excluded.player_max
    returning namespace_id, client, player_count`;
}

/** Those who were not admitted, when those who were have been `counted`. */
export const CROWDED = sql`
  select coalesce(jsonb_agg(to_jsonb(crowded)), '[]') from (
    select party,
      coalesce(max(counted.player_count), max(held.player_count), 0) + count(*) > max(players_max) as is_over
    from reckoned left join held using (namespace_id, client) left join counted using (namespace_id, client)
    where players_then > players_max group by party order by party
  ) as crowded`;

/**
 * Whether a find that waits could ever sit in a lobby: whoever comes later does not get there before it. While its namespace
 * moves to another version, what it looks for there may not be noted yet: then it waits for all regions, which the version
 * recommends where the player names none.
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

/** Those of a list of tickets wait no more. */
export function leaveQueue(tickets: SQL, namespace_ids: SQL): SQL {
  return sql`delete from ${queuedFinds} where namespace_id = any(${namespace_ids}::uuid[]) and ticket in ${tickets}`;
}
