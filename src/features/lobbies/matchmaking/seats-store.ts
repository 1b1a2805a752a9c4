import { sql } from 'drizzle-orm';
import type { Tx } from '../../../platform/database/database.ts';
import type { DedicatedConnection } from '../../../platform/database/dedicated-connection.ts';
import { isTaken } from '../../../platform/database/failures.ts';
import { createStatement } from '../../../platform/database/statement.ts';
import { bumpSelected, inOrder, lockTopics } from '../../../platform/watch/versions.ts';
import { isEnding } from '../../servers/servers.ts';
import { topics } from '../../topics.ts';
import { type LobbyRow, lobbies, players, queuedFinds } from '../tables.ts';
import { type Claim, LAST_PLACE, leaveQueue, type OverLimit, waitsFor } from './admission-store.ts';
import { numberPlayers } from './client-numbers-store.ts';

/** A proposed seat. */
export interface ProposedSeat extends Claim {
  lobby_id: string;
  namespace_id: string;
  /** A join names its lobby; a find and a party get one that was chosen for them. */
  kind: 'find' | 'party' | 'join';
}

/** The columns of a lobby that took players. */
export type AcceptingLobby = Omit<
  LobbyRow,
  | 'game_id'
  | 'server_id'
  | 'state'
  | 'create_ts'
  | 'ready_ts'
  | 'idle_ts'
  | 'seats_check_ts'
  | 'stop_ts'
  | 'stop_reason'
>;

/** The proposed seats, as one list for each of their members. */
type SeatLists = { [Key in keyof ProposedSeat]: ProposedSeat[Key][] } & {
  /** Names of the topics. */
  bumped: string[];
  /** See {@link numberPlayers}. */
  range_fraction: number | null;
  now: string;
  deadline: string;
};

const LOBBY = {
  namespace_id: sql`${lobbies.namespace_id}`,
  version_id: sql`${lobbies.version_id}`,
  game_mode: sql`${lobbies.game_mode}`,
  region: sql`${lobbies.region}`,
  tags: sql`${lobbies.tags}`,
};
const SEATS_MAX = sql`case when waiting.seats > 1 then max_players_party else max_players_normal end`;

/** Whether a lobby may take all players that are `wanted` for it: it runs, is open to them and has their seats. */
const HAS_ROOM = sql`
  stop_ts is null and (finds + parties = 0 or not is_closed)
  -- Players with the lower maximum come first; only the others count them.
  and (finds = 0 or player_count + finds
    + case when max_players_party < max_players_normal then parties else 0 end
    + case when max_players_direct < max_players_normal then joins else 0 end <= max_players_normal)
  and (parties = 0 or player_count + parties
    + case when max_players_party < max_players_normal then 0 else finds end
    + case when max_players_direct < max_players_party then joins else 0 end <= max_players_party)
  and (joins = 0 or player_count + joins
    + case when max_players_direct < max_players_normal then 0 else finds end
    + case when max_players_direct < max_players_party then 0 else parties end <= max_players_direct)`;

/** The statement of {@link takeSeats}. */
const TAKE_SEATS = createStatement<SeatLists>(
  (value) => sql`
    with proposed as (
      select seat.* from unnest(
        ${value('player_id')}::uuid[], ${value('lobby_id')}::uuid[], ${value('namespace_id')}::uuid[],
        ${value('kind')}::text[], ${value('address')}::text[], ${value('client')}::text[],
        ${value('players_max')}::int[], ${value('request_number')}::int[], ${value('ticket')}::uuid[]
      ) as seat (player_id, lobby_id, namespace_id, kind, address, client, players_max, request_number, ticket)
    ),
    ${numberPlayers(value('range_fraction'))},
    admitted as (select * from numbered where players_after <= players_max),
    -- Finds from the queue that are over their limit even if no other request of their client gets a seat.
    over_alone as (
      select lobby_id, ticket from numbered left join (
        select namespace_id, client, count(*) as players from admitted group by namespace_id, client
      ) as coming using (namespace_id, client)
      where ticket is not null and is_count_exact and players_after > players_max
      group by lobby_id, ticket, request_number
      having max(players_before + coalesce(coming.players, 0)) + count(*) > max(players_max)
    ),
    wanted as (
      select lobby_id, namespace_id, count(*) filter (where kind = 'find') as finds,
        count(*) filter (where kind = 'party') as parties, count(*) filter (where kind = 'join') as joins,
        max(coalesce(place, ${LAST_PLACE})) filter (where kind <> 'join') as last_place,
        coalesce(array_agg(ticket) filter (where ticket is not null), '{}') as tickets
      from admitted left join (select namespace_id, ticket, place from ${queuedFinds}) as turn using (namespace_id, ticket)
      group by lobby_id, namespace_id
    ),
    acceptable as (
      select wanted.* from wanted join ${lobbies} using (lobby_id, namespace_id)
      where ${HAS_ROOM} and not ${isEnding(lobbies.server_id)}
        and not exists (
          select from ${queuedFinds} as waiting
          where ${waitsFor(LOBBY, SEATS_MAX)}
            and waiting.place < wanted.last_place and waiting.ticket <> all(wanted.tickets)
            -- A find whose turn it is, and that is over its limit, keeps no other waiting.
            and not exists (
              select from over_alone where over_alone.ticket = waiting.ticket and over_alone.lobby_id = wanted.lobby_id
            )
        )
    ),
    -- A round in which no lobby accepts players bumps nothing, so it wakes no watcher.
    ${bumpSelected(
      sql`
        select name from unnest(${value('bumped')}::text[]) with ordinality as given (name, rank) where name in (
          select unnest(array[${topics.lobbiesOf('')}::text || namespace_id, ${topics.queueOf('')}::text || namespace_id])
          from (select distinct namespace_id from acceptable) as accepted
        )
        order by rank`,
      'bumped',
    )},
    accepting as (
      update ${lobbies} set
        player_count = player_count + finds + parties + joins,
        idle_ts = null,
        changed = (select version from bumped where topic = ${topics.lobbiesOf('')}::text || ${lobbies.namespace_id})
      from acceptable as wanted
      -- Counting "bumped" locks the versions before all other rows, as everywhere. Others may have changed the lobby before
      -- that, so its room is checked again.
      where ${lobbies.lobby_id} = wanted.lobby_id and (select count(*) from bumped) > 0 and ${HAS_ROOM}
      returning ${lobbies.lobby_id}, ${lobbies.namespace_id}, version_id, game_mode, region, tags, is_closed, publicity,
        max_players_normal, max_players_direct, max_players_party, player_count, code, ports, changed, ready_ts
    ),
    seated as (
      insert into ${players} (
        player_id, lobby_id, namespace_id, address, client, client_number, create_ts, seat_deadline_ts
      )
      select admitted.player_id, admitted.lobby_id, admitted.namespace_id, admitted.address, admitted.client, client_number,
        ${value('now')}::timestamptz, case when accepting.ready_ts is null then null else ${value('deadline')}::timestamptz end
      from admitted join accepting on accepting.lobby_id = admitted.lobby_id
      returning namespace_id, client
    ),
    left_queue as (
      ${leaveQueue(sql`(select ticket from admitted join accepting on accepting.lobby_id = admitted.lobby_id)`, value('namespace_id'))}
    )
    select accepting.*, (
      select coalesce(jsonb_agg(to_jsonb(over_limit)), '[]') from (
        select request_number,
          bool_and(is_count_exact) and max(players_before + coalesce(players, 0)) + count(*) > max(players_max) as is_over_alone
        from numbered left join (
          select namespace_id, client, count(*) as players from seated group by namespace_id, client
        ) as counted using (namespace_id, client)
        where players_after > players_max group by request_number order by request_number
      ) as over_limit
    ) as over_limit
    from (select) as one_row left join accepting on true`,
);

/** The lobbies that took their players, and the requests that are over their client's limit. */
export interface TakenSeats {
  accepting: AcceptingLobby[];
  over_limit: OverLimit[];
}

/**
 * Takes many seats in one statement. Leaves out the requests that are over their client's limit (I-M11). A lobby takes all
 * other players proposed for it, or none: it and its server must not be ending (I-M5), it must have room (for finds by its
 * normal maximum, for parties by theirs, for joins by the direct one) and, unless only joins come, it must be open (I-M4)
 * and no earlier find may wait for it (I-M12). Nothing else fills lobbies after their creation (I-M1). A seated find leaves
 * the queue. Fails if another transaction has seated players of a client since the statement began: see `isConflict`.
 */
export async function takeSeats(
  connection: DedicatedConnection,
  seats: ProposedSeat[],
  moments: Moments,
): Promise<TakenSeats> {
  return await execute(connection, toLists(seats, moments, Math.random()));
}

/**
 * Like {@link takeSeats}, but first waits for all other transactions that seat players in these namespaces.
 * So it has no conflict, and returns for each request over its client's limit whether it exceeds the limit alone.
 */
export async function takeSeatsExactly(tx: Tx, seats: ProposedSeat[], moments: Moments): Promise<TakenSeats> {
  await lockTopics(tx, bumpedBy(seats));
  return await execute(tx, toLists(seats, moments, null));
}

/** Returns whether `takeSeats` failed because another transaction gave a player of a client the same number. */
export function isConflict(error: unknown): boolean {
  return isTaken(error, 'players_of_client');
}

async function execute(connection: DedicatedConnection, lists: SeatLists): Promise<TakenSeats> {
  const rows = await connection.execute<Row>(TAKE_SEATS(lists));
  // Each row has the whole list. When no lobby took players there is one row, without a lobby.
  const accepting = rows
    .map(({ over_limit: _of_all, ...lobby }) => lobby)
    .filter(({ lobby_id }) => lobby_id !== null)
    .map((lobby) => ({ ...lobby, changed: Number(lobby.changed) }));
  return { accepting, over_limit: rows[0]?.over_limit ?? [] };
}

interface Moments {
  now: Date;
  /** The moment by which the players of a ready lobby must have connected. */
  deadline: Date;
}

type Row = Record<string, unknown> & AcceptingLobby & { over_limit: OverLimit[] };

function bumpedBy(seats: ProposedSeat[]): string[] {
  const queues = seats.flatMap(({ ticket, namespace_id }) => (ticket === null ? [] : [topics.queueOf(namespace_id)]));
  return inOrder([...seats.map(({ namespace_id }) => topics.lobbiesOf(namespace_id)), ...queues]);
}

function toLists(seats: ProposedSeat[], { now, deadline }: Moments, range_fraction: number | null): SeatLists {
  const column = <Key extends keyof ProposedSeat>(key: Key) => seats.map((seat) => seat[key]);
  return {
    bumped: bumpedBy(seats),
    range_fraction,
    player_id: column('player_id'),
    lobby_id: column('lobby_id'),
    namespace_id: column('namespace_id'),
    kind: column('kind'),
    address: column('address'),
    client: column('client'),
    players_max: column('players_max'),
    request_number: column('request_number'),
    ticket: column('ticket'),
    now: now.toISOString(),
    deadline: deadline.toISOString(),
  };
}
