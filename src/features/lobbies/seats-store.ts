import { type SQL, sql } from 'drizzle-orm';
import type { DedicatedConnection } from '../../platform/database/dedicated-connection.ts';
import { createStatement } from '../../platform/database/statement.ts';
import { bumpAll, bumpSelected, inOrder } from '../../platform/watch/versions.ts';
import { isEnding } from '../servers/servers.ts';
import { topics } from '../topics.ts';
import {
  ADMIT,
  type Claim,
  countClients,
  LAST_PLACE,
  leaveQueue,
  OVER_LIMITS,
  type OverLimit,
  waitsFor,
} from './admission-store.ts';
import { bumpSeats } from './players-store.ts';
import { clientCounts, type LobbyRow, lobbies, players, queuedFinds } from './tables.ts';

/** A proposed seat. */
export interface ProposedSeat extends Claim {
  lobby_id: string;
  namespace_id: string;
  /** A join names its lobby; a find and a party get one that was chosen for them. */
  kind: 'find' | 'party' | 'join';
}

/** What a round reads of a lobby that took players. */
export type AcceptingLobby = Omit<
  LobbyRow,
  'game_id' | 'server_id' | 'state' | 'create_ts' | 'ready_ts' | 'idle_ts' | 'stop_ts' | 'stop_reason'
>;

const OF_LOBBY = {
  namespace_id: sql`${lobbies.namespace_id}`,
  version_id: sql`${lobbies.version_id}`,
  game_mode: sql`${lobbies.game_mode}`,
  region: sql`${lobbies.region}`,
  tags: sql`${lobbies.tags}`,
};

type Value = Parameters<Parameters<typeof createStatement<SeatLists>>[0]>[0];

/** The wanted seats as rows. */
const asked = (value: Value) => sql`
  asked as (
    select seat.* from unnest(
      ${value('player_id')}::uuid[], ${value('lobby_id')}::uuid[], ${value('namespace_id')}::uuid[],
      ${value('kind')}::text[], ${value('address')}::text[], ${value('client')}::text[],
      ${value('players_max')}::int[], ${value('party')}::int[], ${value('ticket')}::uuid[]
    ) as seat (player_id, lobby_id, namespace_id, kind, address, client, players_max, party, ticket)
  )`;

/** The wanted seats, after the announcement; the count makes the versions the first rows that are locked, here as everywhere. */
const PROPOSED = sql`proposed as (select asked.* from asked where (select count(*) from bumped) > 0)`;

/** How many players come to each lobby, by kind. */
const NUMBERS = sql`
  count(*) filter (where kind = 'find') as finds, count(*) filter (where kind = 'party') as parties,
  count(*) filter (where kind = 'join') as joins`;

/** The lobbies of `wanted` that take their players. `awaited`: whether an earlier find waits for the lobby. */
const accepting = (awaited: SQL) => sql`
  accepting as (
    update ${lobbies} set
      player_count = player_count + finds + parties + joins,
      idle_ts = null,
      changed = (select version from bumped where topic = ${topics.lobbiesOf('')}::text || ${lobbies.namespace_id})
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
          and ${awaited}
      )
    returning ${lobbies.lobby_id}, ${lobbies.namespace_id}, version_id, game_mode, region, tags, is_closed, publicity,
      max_players_normal, max_players_direct, max_players_party, player_count, code, ports, changed, ready_ts
  )`;

/** Seats the players of a common table expression whose lobbies take them, and counts them with their clients. */
const seated = (value: Value, coming: SQL, playersMax?: SQL) => sql`
  seated as (
    insert into ${players} (player_id, lobby_id, namespace_id, address, client, create_ts, seat_deadline_ts)
    select coming.player_id, coming.lobby_id, coming.namespace_id, coming.address, coming.client, ${value('now')}::timestamptz,
      case when accepting.ready_ts is null then null else ${value('deadline')}::timestamptz end
    from ${coming} as coming join accepting on accepting.lobby_id = coming.lobby_id
  ),
  counted as (${countClients(sql`(select coming.* from ${coming} as coming join accepting on accepting.lobby_id = coming.lobby_id) as seated`, playersMax)})`;

/** The statement of {@link takeSeats}. */
const TAKE = createStatement<SeatLists>(
  (value) => sql`
    with ${asked(value)},
    ${bumpAll(value('bumped'))},
    ${PROPOSED},
    ${ADMIT},
    wanted as (
      select lobby_id, namespace_id, ${NUMBERS},
        max(coalesce(place, ${LAST_PLACE})) filter (where kind <> 'join') as last_place,
        coalesce(array_agg(ticket) filter (where ticket is not null), '{}') as tickets
      from admitted left join (select namespace_id, ticket, place from ${queuedFinds}) as turn using (namespace_id, ticket)
      group by lobby_id, namespace_id
    ),
    ${accepting(sql`
      waiting.place < wanted.last_place and waiting.ticket <> all(wanted.tickets)
        -- A find whose turn it is, and that is over its limit, keeps nobody waiting.
        and not exists (
          select from passed where passed.ticket = waiting.ticket and passed.lobby_id = wanted.lobby_id
        )`)},
    ${seated(value, sql`admitted`)},
    left_queue as (${leaveQueue(sql`(select ticket from admitted join accepting on accepting.lobby_id = admitted.lobby_id)`, value('namespace_id'))}),
    ${bumpSeats('accepting')}
    select accepting.*, (${OVER_LIMITS}) as over_limit
    from (select count(*) from bumped_seats) as bumped left join accepting on true`,
);

/** The statement of {@link takeSeatsOfFew}. Of several limits of a client the lowest counts: {@link TAKE} decides above that. */
const TAKE_OF_FEW = createStatement<SeatLists>(
  (value) => sql`
    with ${asked(value)},
    over_limit as (
      select from (
        select namespace_id, client, count(*) as coming, min(players_max) as players_max from asked group by namespace_id, client
      ) as theirs left join ${clientCounts} using (namespace_id, client)
      where coalesce(player_count, 0) + coming > players_max
    ),
    ${bumpSelected(sql`select name from unnest(${value('bumped')}::text[]) as name where not exists (select from over_limit)`, 'bumped')},
    ${PROPOSED},
    wanted as (
      select lobby_id, namespace_id, ${NUMBERS} from proposed group by lobby_id, namespace_id
    ),
    ${accepting(sql`finds + parties > 0`)},
    ${seated(value, sql`proposed`, sql`min(players_max)`)},
    ${bumpSeats('accepting')}
    select accepting.*, exists (select from over_limit) as has_over_limit
    from (select count(*) from bumped_seats) as bumped left join accepting on true`,
);

/** The wanted seats: a list for each of their members. */
type SeatLists = { [Key in keyof ProposedSeat]: ProposedSeat[Key][] } & {
  /** Names of the topics. */
  bumped: string[];
  now: string;
  deadline: string;
};

/** The lobbies that took their players, and the requests that are over their client's limit. */
export interface TakenSeats {
  accepting: AcceptingLobby[];
  over_limit: OverLimit[];
}

/**
 * Takes many seats in one statement. Leaves out the requests that are over their client's limit (I-M11). A lobby takes all
 * other players proposed for it, or none: it and its server must not be ending (I-M5), it must have room (for finds by its
 * normal maximum, for parties by theirs, for joins by the direct one) and, unless only joins come, it must be open (I-M4)
 * and no earlier find may wait for it (I-M12). Only this and {@link takeSeatsOfFew} fill lobbies after their creation
 * (I-M1). A seated find leaves the queue.
 */
export async function takeSeats(
  connection: DedicatedConnection,
  seats: ProposedSeat[],
  moments: Moments,
): Promise<TakenSeats> {
  if (seats.length === 0) return { accepting: [], over_limit: [] };
  const rows = await connection.execute<Row & { over_limit: OverLimit[] }>(TAKE(toLists(seats, moments)));
  // Each row has the whole list: when no lobby took anybody there is one row, without a lobby.
  const lobbies_of_rows = rows.map(({ over_limit: _of_all, ...lobby }) => lobby);
  return { accepting: toAccepting(lobbies_of_rows), over_limit: rows[0]?.over_limit ?? [] };
}

/**
 * Takes many seats at less cost, in a round without finds from the queue. Takes nothing and announces nothing if a client
 * would be over its limit: undefined.
 */
export async function takeSeatsOfFew(
  connection: DedicatedConnection,
  seats: ProposedSeat[],
  moments: Moments,
): Promise<TakenSeats | undefined> {
  const rows = await connection.execute<Row & { has_over_limit: boolean }>(TAKE_OF_FEW(toLists(seats, moments)));
  if (rows[0]?.has_over_limit) return undefined;
  return { accepting: toAccepting(rows.map(({ has_over_limit: _none, ...lobby }) => lobby)), over_limit: [] };
}

interface Moments {
  now: Date;
  /** By when the players of a ready lobby must have connected. */
  deadline: Date;
}

type Row = Record<string, unknown> & AcceptingLobby;

function toLists(seats: ProposedSeat[], { now, deadline }: Moments): SeatLists {
  const column = <Key extends keyof ProposedSeat>(key: Key) => seats.map((seat) => seat[key]);
  const queues = seats.flatMap(({ ticket, namespace_id }) => (ticket === null ? [] : [topics.queueOf(namespace_id)]));
  return {
    bumped: inOrder([...seats.map(({ namespace_id }) => topics.lobbiesOf(namespace_id)), ...queues]),
    player_id: column('player_id'),
    lobby_id: column('lobby_id'),
    namespace_id: column('namespace_id'),
    kind: column('kind'),
    address: column('address'),
    client: column('client'),
    players_max: column('players_max'),
    party: column('party'),
    ticket: column('ticket'),
    now: now.toISOString(),
    deadline: deadline.toISOString(),
  };
}

/** Leaves out the row without a lobby, which there is when none took anybody. */
function toAccepting(rows: AcceptingLobby[]): AcceptingLobby[] {
  return rows
    .filter(({ lobby_id }) => lobby_id !== null)
    .map((lobby) => ({ ...lobby, changed: Number(lobby.changed) }));
}
