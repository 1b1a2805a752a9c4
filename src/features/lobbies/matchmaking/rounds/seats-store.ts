import { type SQL, sql } from 'drizzle-orm';
import type { Tx } from '../../../../platform/database/database.ts';
import type { DedicatedConnection } from '../../../../platform/database/dedicated-connection.ts';
import { isTaken } from '../../../../platform/database/failures.ts';
import { createStatement } from '../../../../platform/database/statement.ts';
import { bumpSelected, inOrder, lockTopics } from '../../../../platform/watch/versions.ts';
import { isEnding } from '../../../servers/servers.ts';
import { topics } from '../../../topics.ts';
import { recordChanges } from '../../changed-lobbies-store.ts';
import { type LobbyRow, lobbies, players, queuedFinds } from '../../tables.ts';
import {
  LAST_PLACE,
  leaveQueue,
  listOverAlone,
  listOverLimit,
  type OverLimit,
  type RequestedSeat,
  waitsFor,
} from './admission-store.ts';
import { type ClientLists, listClients, numberPlayers } from './client-numbers-store.ts';

/** A proposed seat. */
export interface ProposedSeat extends RequestedSeat {
  lobby_id: string;
  namespace_id: string;
  /** `find`: a find for one player; `party`: a find for several; `join`: a join, for one or several. */
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

/** The proposed seats, as one list for each of their members, and their lobbies and clients. */
interface SeatLists extends ClientLists {
  player_id: string[];
  kind: ProposedSeat['kind'][];
  address: string[];
  players_max: number[];
  request_number: number[];
  ticket: (string | null)[];
  /** The lobbies, each once. */
  lobby_id: string[];
  namespace_id: string[];
  /** For each seat: the index of its lobby, from 1. */
  lobby_index: number[];
  now: string;
  deadline: string;
}

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
  -- Checks as if seats were given one after another, in ascending order of the kinds' maxima (ties: finds, parties,
  -- joins). So each check adds the seats of its own kind and of the kinds before it.
  and (finds = 0 or player_count + finds
    + case when max_players_party < max_players_normal then parties else 0 end
    + case when max_players_direct < max_players_normal then joins else 0 end <= max_players_normal)
  and (parties = 0 or player_count + parties
    + case when max_players_party < max_players_normal then 0 else finds end
    + case when max_players_direct < max_players_party then joins else 0 end <= max_players_party)
  and (joins = 0 or player_count + joins
    + case when max_players_direct < max_players_normal then 0 else finds end
    + case when max_players_direct < max_players_party then 0 else parties end <= max_players_direct)`;

/** Whether an earlier find waits for a lobby that is wanted. */
const IS_RESERVED = sql`
  exists (
    select from ${queuedFinds} as waiting
    where ${waitsFor(LOBBY, SEATS_MAX)}
      and waiting.place < wanted.last_place and waiting.ticket <> all(wanted.tickets)
      -- A find whose turn it is, and that is over its limit, keeps no other waiting.
      and not exists (
        select from over_alone where over_alone.ticket = waiting.ticket and over_alone.lobby_index = wanted.lobby_index
      )
  )`;

/** The rule of a statement that reads no places: any find that waits in a namespace keeps its other finds from seats. */
const MAY_BE_RESERVED = sql`
  finds + parties > 0 and exists (
    select from ${queuedFinds} as waiting where waiting.namespace_id = ${lobbies.namespace_id}
  )`;

/**
 * Creates the statement of {@link takeSeats}. Without `has_queue`, it has no parts about places in the queue. Its steps:
 *
 * - `proposed`, `proposed_lobbies`: the proposed seats, and their lobbies
 * - `numbered`: the proposed seats, each with a free number of its client
 * - `within_limit`: the seats with which their client has no more players than its limit
 * - `over_alone`: finds from the queue that are over their limit alone (with a queue)
 * - `wanted`: for each lobby, how many of these seats it is to give; with a queue, also the last place and the tickets of
 *   their finds
 * - `suitable`: the lobbies that can give all of them
 * - `bumped`: the topics of these lobbies, which locks them
 * - `accepting`: the lobbies that can still give all of them now that they are locked, with their new count
 * - `given_seats`: the seats within the limit that are in accepting lobbies
 * - `inserted_players`: the rows of their players
 * - `left_queue`: the finds among them that were in the queue (with a queue)
 */
function createSeatsStatement({ has_queue }: { has_queue: boolean }) {
  const ifQueue = (part: SQL) => (has_queue ? part : sql``);
  return createStatement<SeatLists>(
    (value) => sql`
    with proposed as (
      select seat.* from unnest(
        ${value('player_id')}::uuid[], ${value('lobby_index')}::int[], ${value('kind')}::text[], ${value('address')}::text[],
        ${value('players_max')}::int[], ${value('request_number')}::int[], ${value('ticket')}::uuid[],
        ${value('client_index')}::int[], ${value('nth_of_client')}::int[], ${value('through_request')}::int[]
      ) as seat (
        player_id, lobby_index, kind, address, players_max, request_number, ticket, client_index, nth_of_client, through_request
      )
    ),
    proposed_lobbies as (
      select * from unnest(${value('lobby_id')}::uuid[], ${value('namespace_id')}::uuid[]) with ordinality
        as lobby (lobby_id, namespace_id, lobby_index)
    ),
    ${numberPlayers(value)},
    within_limit as not materialized (select * from numbered where players_after <= players_max),
    ${ifQueue(sql`${listOverAlone(sql`lobby_index, ticket`)},`)}
    wanted as (
      select lobby_index, count(*) filter (where kind = 'find') as finds,
        count(*) filter (where kind = 'party') as parties, count(*) filter (where kind = 'join') as joins${ifQueue(sql`,
        max(coalesce(place, ${LAST_PLACE})) filter (where kind <> 'join') as last_place,
        coalesce(array_agg(ticket) filter (where ticket is not null), '{}') as tickets`)}
      from within_limit ${ifQueue(sql`
        join proposed_lobbies using (lobby_index)
        left join (select namespace_id, ticket, place from ${queuedFinds}) as queued using (namespace_id, ticket)`)}
      group by lobby_index
    ),
    suitable as (
      select wanted.*, lobby_id, namespace_id
      from wanted join proposed_lobbies using (lobby_index) join ${lobbies} using (lobby_id, namespace_id)
      where ${HAS_ROOM} and not ${isEnding(lobbies.server_id)} and not (${has_queue ? IS_RESERVED : MAY_BE_RESERVED})
    ),
    -- A round in which no lobby accepts players bumps nothing, so it wakes no watcher.
    ${bumpSelected(
      sql`
        select name from (
          select distinct ${topics.lobbiesOf('')}::text || namespace_id from suitable ${ifQueue(sql`
          union select ${topics.queueOf('')}::text || namespace_id from suitable where cardinality(tickets) > 0`)}
        ) as of_suitable (name) order by name collate "C"`,
      'bumped',
    )},
    ${recordChanges(sql`select namespace_id, lobby_id from suitable`)},
    accepting as (
      update ${lobbies} set
        player_count = player_count + finds + parties + joins,
        idle_ts = null,
        changed = (select version from bumped where topic = ${topics.lobbiesOf('')}::text || ${lobbies.namespace_id})
      from suitable
      -- Counting "bumped" locks the topics' versions before any other row. All transactions lock in this order, so no
      -- two wait for each other. Others may have changed the lobby before that, so its room is checked again.
      where ${lobbies.lobby_id} = suitable.lobby_id and (select count(*) from bumped) > 0 and ${HAS_ROOM}
      returning ${lobbies.lobby_id}, ${lobbies.namespace_id}, version_id, game_mode, region, tags, is_closed, publicity,
        max_players_normal, max_players_direct, max_players_party, player_count, code, ports, changed, ready_ts, lobby_index
    ),
    given_seats as not materialized (
      select within_limit.*, lobby_id, namespace_id, ready_ts from within_limit join accepting using (lobby_index)
    ),
    inserted_players as (
      insert into ${players} (
        player_id, lobby_id, namespace_id, address, client, client_number, create_ts, seat_deadline_ts
      )
      select player_id, lobby_id, namespace_id, address, (${value('client')}::text[])[client_index], client_number,
        ${value('now')}::timestamptz, case when ready_ts is null then null else ${value('deadline')}::timestamptz end
      from given_seats
    )${ifQueue(sql`,
    left_queue as (
      ${leaveQueue(sql`select namespace_id, ticket from given_seats`)}
    )`)}
    select accepting.*, ${listOverLimit(sql`given_seats`)} as over_limit
    from (select) as one_row left join accepting on true`,
  );
}

const TAKE_SEATS = createSeatsStatement({ has_queue: true });
const TAKE_SEATS_WITHOUT_QUEUE = createSeatsStatement({ has_queue: false });

/** The lobbies that took their players, and the requests that are over their client's limit. */
export interface TakenSeats {
  accepting: AcceptingLobby[];
  over_limit: OverLimit[];
}

interface TakeOptions {
  /**
   * False for a round without finds from the queue, if probably no find waits in its namespaces. That takes less time. A
   * find that waits nevertheless keeps all other finds of its namespace from seats, whatever it waits for.
   */
  has_queue?: boolean;
}

/**
 * Takes many seats in one statement. Leaves out the requests that are over their client's limit (I-M11). A lobby takes
 * all other players proposed for it, or none: it must run and its server must not be ending (I-M5), it must have room
 * (for finds by its normal maximum, for parties by theirs, for joins by the direct one) and, unless only joins come, it
 * must be open (I-M4) and no earlier find may wait for it (I-M12). Nothing else fills lobbies after their creation
 * (I-M1). A seated find leaves the queue. Fails if another transaction has seated players of a client since the
 * statement began: see `isConflict`.
 */
export async function takeSeats(
  connection: DedicatedConnection,
  seats: ProposedSeat[],
  moments: Moments,
  { has_queue = true }: TakeOptions = {},
): Promise<TakenSeats> {
  const statement = has_queue ? TAKE_SEATS : TAKE_SEATS_WITHOUT_QUEUE;
  return await execute(connection, statement(toLists(seats, moments, Math.random())));
}

/**
 * Like {@link takeSeats}, but first waits for all other transactions that seat players in these namespaces.
 * So it has no conflict, and returns for each request over its client's limit whether it exceeds the limit alone.
 */
export async function takeSeatsUnderLock(tx: Tx, seats: ProposedSeat[], moments: Moments): Promise<TakenSeats> {
  await lockTopics(tx, bumpedBy(seats));
  return await execute(tx, TAKE_SEATS(toLists(seats, moments, null)));
}

/** Returns whether `takeSeats` failed because another transaction gave a player of a client the same number. */
export function isConflict(error: unknown): boolean {
  return isTaken(error, 'players_of_client');
}

async function execute(connection: DedicatedConnection, statement: SQL): Promise<TakenSeats> {
  const rows = await connection.execute<Row>(statement);
  // Each row has the whole list. When no lobby took players there is one row, without a lobby.
  const accepting = rows
    .map(({ over_limit: _over_limit, lobby_index: _lobby_index, ...lobby }) => lobby)
    .filter(({ lobby_id }) => lobby_id !== null)
    .map((lobby) => ({ ...lobby, changed: Number(lobby.changed) }));
  return { accepting, over_limit: rows[0]?.over_limit ?? [] };
}

interface Moments {
  now: Date;
  /** The moment by which the players of a ready lobby must have connected. */
  deadline: Date;
}

type Row = Record<string, unknown> & AcceptingLobby & { lobby_index: number; over_limit: OverLimit[] };

function bumpedBy(seats: ProposedSeat[]): string[] {
  const queues = seats.flatMap(({ ticket, namespace_id }) => (ticket === null ? [] : [topics.queueOf(namespace_id)]));
  return inOrder([...seats.map(({ namespace_id }) => topics.lobbiesOf(namespace_id)), ...queues]);
}

function toLists(seats: ProposedSeat[], { now, deadline }: Moments, range_fraction: number | null): SeatLists {
  const column = <Key extends keyof ProposedSeat>(key: Key) => seats.map((seat) => seat[key]);
  const lobbies = new Map(seats.map(({ lobby_id, namespace_id }) => [lobby_id, namespace_id]));
  const lobby_id = [...lobbies.keys()];
  const indexes = new Map(lobby_id.map((id, index) => [id, index + 1]));
  return {
    ...listClients(seats, range_fraction),
    player_id: column('player_id'),
    kind: column('kind'),
    address: column('address'),
    players_max: column('players_max'),
    request_number: column('request_number'),
    ticket: column('ticket'),
    lobby_id,
    namespace_id: [...lobbies.values()],
    lobby_index: seats.map((seat) => indexes.get(seat.lobby_id) ?? 0),
    now: now.toISOString(),
    deadline: deadline.toISOString(),
  };
}
