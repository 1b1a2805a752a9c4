import { getTableColumns, type SQL, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { at } from '../../platform/database/moments.ts';
import { raise } from '../../platform/watch/versions.ts';
import { isEnding } from '../servers/servers.ts';
import { topics } from '../topics.ts';
import { raiseSeats } from './players-store.ts';
import { touchLobby } from './store.ts';
import { clientCounts, type LobbyRow, lobbies, lobbyCounts, players, queuedFinds } from './tables.ts';

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

/** A proposed seat. */
export interface ProposedSeat extends Claim {
  lobby_id: string;
  namespace_id: string;
  /** A join comes to a lobby it knows, a find to one that was chosen for it. */
  kind: 'find' | 'party' | 'join';
}

/** A request that got no seats because its client has too many: `is_over` by itself, else together with others of the round. */
export interface Crowded {
  party: number;
  is_over: boolean;
}

/** After all places that there are. */
const LAST_PLACE = sql`9223372036854775807::bigint`;

/**
 * The common table expressions that say of `proposed` which are `admitted`: those by whom their client is not above its
 * maximum, counted in their order; and which are `passed`: those who have too many players whatever becomes of the others.
 * The counts are held until the end of the transaction.
 */
const ADMIT = sql`
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

/** Counts players of the common table expression that is named: they are seated in the same statement. */
function countClients(seated: SQL): SQL {
  return sql`
    insert into ${clientCounts} (namespace_id, client, player_count, player_max)
    select namespace_id, client, count(*)::int, max(players_max) from ${seated} group by namespace_id, client
    on conflict (namespace_id, client) do update set
      player_count = ${clientCounts}.player_count + excluded.player_count, player_max = excluded.player_max
    returning namespace_id, client, player_count`;
}

/** Those who were not admitted, when those who were have been `counted`. */
const CROWDED = sql`
  select coalesce(jsonb_agg(to_jsonb(crowded)), '[]') from (
    select party,
      coalesce(max(counted.player_count), max(held.player_count), 0) + count(*) > max(players_max) as is_over
    from reckoned left join held using (namespace_id, client) left join counted using (namespace_id, client)
    where players_then > players_max group by party order by party
  ) as crowded`;

/** Whether a find that waits could ever sit in a lobby: whoever comes later does not get there before it. */
function waitsFor(lobby: Record<'namespace_id' | 'version_id' | 'game_mode' | 'region' | 'tags', SQL>, most: SQL): SQL {
  return sql`
    waiting.namespace_id = ${lobby.namespace_id} and waiting.version_id = ${lobby.version_id}
      and ${lobby.game_mode} = any(waiting.game_modes) and ${lobby.region} = any(waiting.regions)
      and ${lobby.tags} @> waiting.tags and waiting.seats <= ${most}`;
}

/**
 * Takes many seats in one statement. For each lobby, all who were proposed or nobody, but for those whose client has too
 * many players already (I-M11): it and its server must not be ending (I-M5), it must have room for them (finds by its normal
 * maximum, parties by theirs, joins by the direct one) and, if anybody came by find, be open and not be what somebody waits
 * for who was there before (I-M12). This is the only place that fills lobbies after their founding (I-M1), and the only one that decides
 * whether a closed one is found (I-M4). Whoever waited does not wait any more when he sits. Gives the lobbies that took
 * theirs, and who was not admitted.
 */
export async function takeSeats(
  queries: Queries,
  seats: ProposedSeat[],
  { now, deadline }: { now: Date; deadline: Date },
): Promise<{ accepting: LobbyRow[]; crowded: Crowded[] }> {
  const column = (key: keyof ProposedSeat) => sql.param(seats.map((seat) => seat[key]));
  const queues = seats.flatMap(({ ticket, namespace_id }) => (ticket === null ? [] : [topics.queueOf(namespace_id)]));
  const rows = await queries.execute<Record<string, unknown> & { crowded: Crowded[] }>(sql`
    with ${raise([...seats.map(({ namespace_id }) => topics.lobbiesOf(namespace_id)), ...queues])},
    proposed as (
      -- The count makes the namespaces' versions the first rows that are locked, here as everywhere.
      select seat.* from unnest(
        ${column('player_id')}::uuid[], ${column('lobby_id')}::uuid[], ${column('namespace_id')}::uuid[],
        ${column('kind')}::text[], ${column('address')}::text[], ${column('client')}::text[],
        ${column('players_max')}::int[], ${column('party')}::int[], ${column('ticket')}::uuid[]
      ) as seat (player_id, lobby_id, namespace_id, kind, address, client, players_max, party, ticket)
      where (select count(*) from told) > 0
    ),
    ${ADMIT},
    wanted as (
      select lobby_id, namespace_id,
        count(*) filter (where kind = 'find') as finds, count(*) filter (where kind = 'party') as parties,
        count(*) filter (where kind = 'join') as joins,
        max(coalesce(place, ${LAST_PLACE})) filter (where kind <> 'join') as last_place,
        coalesce(array_agg(ticket) filter (where ticket is not null), '{}') as tickets
      from admitted left join (select namespace_id, ticket, place from ${queuedFinds}) as turn using (namespace_id, ticket)
      group by lobby_id, namespace_id
    ),
    accepting as (
      update ${lobbies} set
        player_count = player_count + finds + parties + joins,
        idle_ts = null,
        changed = (select version from told where topic = ${topics.lobbiesOf('')}::text || ${lobbies.namespace_id})
      from wanted
      where ${lobbies.lobby_id} = wanted.lobby_id and ${lobbies.namespace_id} = wanted.namespace_id and stop_ts is null
        and not ${isEnding(lobbies.server_id)}
        and (finds + parties = 0 or not is_closed)
        -- Those with the lower maximum come first; only the others count them.
        and (finds = 0 or player_count + finds
          + case when max_players_party < max_players_normal then parties else 0 end
          + case when max_players_direct < max_players_normal then joins else 0 end <= max_players_normal)
        and (parties = 0 or player_count + parties
          + case when max_players_party < max_players_normal then 0 else finds end
          + case when max_players_direct < max_players_party then joins else 0 end <= max_players_party)
        and (joins = 0 or player_count + joins
          + case when max_players_direct < max_players_normal then 0 else finds end
          + case when max_players_direct < max_players_party then 0 else parties end <= max_players_direct)
        and not exists (
          select from ${queuedFinds} as waiting
          where ${waitsFor(OF_LOBBY, sql`case when waiting.seats > 1 then max_players_party else max_players_normal end`)}
            and waiting.place < wanted.last_place and waiting.ticket <> all(wanted.tickets)
            -- Whose turn it is, and who may not come, keeps nobody waiting.
            and not exists (
              select from passed where passed.ticket = waiting.ticket and passed.lobby_id = wanted.lobby_id
            )
        )
      returning ${lobbies}.*
    ),
    seated as (
      insert into ${players} (player_id, lobby_id, namespace_id, address, client, create_ts, seat_deadline_ts)
      select admitted.player_id, admitted.lobby_id, admitted.namespace_id, admitted.address, admitted.client, ${at(now)},
        case when accepting.ready_ts is null then null else ${at(deadline)} end
      from admitted join accepting on accepting.lobby_id = admitted.lobby_id
    ),
    counted as (${countClients(sql`(select admitted.* from admitted join accepting on accepting.lobby_id = admitted.lobby_id) as seated`)}),
    ${queues.length === 0 ? sql`` : sql`left_queue as (${leaveQueue(sql`(select ticket from admitted join accepting on accepting.lobby_id = admitted.lobby_id)`, seats)}),`}
    ${raiseSeats('accepting')}
    select accepting.*, (${CROWDED}) as crowded
    from (select count(*) from told_seats) as told left join accepting on true`);
  const accepting = rows.filter(({ lobby_id }) => lobby_id !== null).map(toLobbyRow);
  return { accepting, crowded: rows[0]?.crowded ?? [] };
}

const OF_LOBBY = {
  namespace_id: sql`${lobbies.namespace_id}`,
  version_id: sql`${lobbies.version_id}`,
  game_mode: sql`${lobbies.game_mode}`,
  region: sql`${lobbies.region}`,
  tags: sql`${lobbies.tags}`,
};

function leaveQueue(tickets: SQL, seats: Pick<ProposedSeat, 'namespace_id'>[]): SQL {
  const namespace_ids = sql.param([...new Set(seats.map(({ namespace_id }) => namespace_id))]);
  return sql`delete from ${queuedFinds} where namespace_id = any(${namespace_ids}::uuid[]) and ticket in ${tickets}`;
}

/** A lobby that is to be made, as far as it matters who may make it. */
export type CountedLobby = Pick<
  LobbyRow,
  | 'lobby_id'
  | 'namespace_id'
  | 'version_id'
  | 'game_mode'
  | 'region'
  | 'tags'
  | 'max_players_normal'
  | 'max_players_party'
>;

/**
 * Counts one more lobby of a namespace, and those of its founders whose client may have them, and tells of it. The first of
 * them makes it: nobody is counted if he may not, if there are as many lobbies as may be, or if somebody waits for it who was
 * there before (I-M12). Gives the version of the namespace's list with which the lobby is to be inserted.
 */
export async function countLobby(
  tx: Tx,
  lobby: CountedLobby,
  founders: Claim[],
  lobby_count_max: number,
): Promise<{ changed: number | undefined; crowded: Crowded[] }> {
  const { namespace_id } = lobby;
  const column = (key: keyof Claim) => sql.param(founders.map((claim) => claim[key]));
  const is_awaited = founders.some(({ ticket }) => ticket !== null);
  const changed = await touchLobby(tx, lobby, is_awaited ? [topics.queueOf(namespace_id)] : []);
  const made = {
    namespace_id: sql`${namespace_id}::uuid`,
    version_id: sql`${lobby.version_id}::uuid`,
    game_mode: sql`${lobby.game_mode}::text`,
    region: sql`${lobby.region}::text`,
    tags: sql`${JSON.stringify(lobby.tags)}::jsonb`,
  };
  const most = sql`case when waiting.seats > 1 then ${lobby.max_players_party}::int else ${lobby.max_players_normal}::int end`;
  const [row] = await tx.execute<{ is_counted: boolean; crowded: Crowded[] }>(sql`
    with proposed as (
      select seat.*, ${namespace_id}::uuid as namespace_id from unnest(
        ${column('client')}::text[], ${column('players_max')}::int[], ${column('party')}::int[], ${column('ticket')}::uuid[]
      ) as seat (client, players_max, party, ticket)
    ),
    ${ADMIT},
    turn as (
      select coalesce(min(coalesce(place, ${LAST_PLACE})) filter (where party = 0), ${LAST_PLACE}) as first_place,
        coalesce(max(coalesce(place, ${LAST_PLACE})), ${LAST_PLACE}) as last_place,
        coalesce(array_agg(ticket) filter (where ticket is not null), '{}') as tickets,
        bool_or(party = 0) as has_maker
      from admitted left join (select namespace_id, ticket, place from ${queuedFinds}) as turn using (namespace_id, ticket)
    ),
    counted_lobby as (
      insert into ${lobbyCounts} (namespace_id, lobby_count)
      select ${namespace_id}::uuid, 1 from turn
      where (${founders.length} = 0 or has_maker)
        and not exists (
          select from ${queuedFinds} as waiting
          where waiting.namespace_id = ${namespace_id}::uuid and waiting.ticket <> all(tickets)
            and not exists (select from passed where passed.ticket = waiting.ticket)
            -- All who wait would make a lobby; those after the maker wait for places.
            and (waiting.place < first_place or waiting.place < last_place and ${waitsFor(made, most)})
        )
      on conflict (namespace_id) do update set lobby_count = ${lobbyCounts}.lobby_count + 1
        where ${lobbyCounts}.lobby_count < ${lobby_count_max}
      returning lobby_count
    ),
    counted as (${countClients(sql`(select * from admitted where exists (select from counted_lobby)) as seated`)}),
    left_queue as (
      ${leaveQueue(sql`(select ticket from admitted where exists (select from counted_lobby))`, [lobby])}
    )
    select exists (select from counted_lobby) as is_counted, (${CROWDED}) as crowded`);
  return { changed: row?.is_counted ? changed : undefined, crowded: row?.crowded ?? [] };
}

/** Makes a lobby, with its founders' seats taken. */
export async function insertLobby(
  tx: Tx,
  lobby: LobbyRow,
  founders: Pick<Claim, 'player_id' | 'address' | 'client'>[],
): Promise<void> {
  const column = (key: 'player_id' | 'address' | 'client') => sql.param(founders.map((founder) => founder[key]));
  await tx.insert(lobbies).values(lobby);
  await tx.execute(sql`
    insert into ${players} (player_id, lobby_id, namespace_id, address, client, create_ts)
    select founder.player_id, ${lobby.lobby_id}::uuid, ${lobby.namespace_id}::uuid, founder.address, founder.client,
      ${at(lobby.create_ts)}
    from unnest(${column('player_id')}::uuid[], ${column('address')}::text[], ${column('client')}::text[])
      as founder (player_id, address, client)`);
}

const COLUMNS = Object.entries(getTableColumns(lobbies));

/** A row of a statement of our own, read as Drizzle reads those of its statements. */
function toLobbyRow(raw: Record<string, unknown>): LobbyRow {
  const read = COLUMNS.map(([name, column]) => [
    name,
    raw[name] === null ? null : column.mapFromDriverValue(raw[name]),
  ]);
  return Object.fromEntries(read);
}
