import { type SQL, sql } from 'drizzle-orm';
import type { DedicatedConnection } from '../../platform/database/dedicated-connection.ts';
import { createStatement } from '../../platform/database/statement.ts';
import { bumpAll, bumpSelected, inOrder } from '../../platform/watch/versions.ts';
import { isEnding } from '../servers/servers.ts';
import { topics } from '../topics.ts';
import {
  ADMIT,
  type Claim,
  CROWDED,
  type Crowded,
  countClients,
  LAST_PLACE,
  leaveQueue,
  waitsFor,
} from './admission-store.ts';
import { raiseSeats } from './players-store.ts';
import { clientCounts, type LobbyRow, lobbies, players, queuedFinds } from './tables.ts';

/** A proposed seat. */
export interface ProposedSeat extends Claim {
  lobby_id: string;
  namespace_id: string;
  /** A join comes to a lobby it knows, a find to one that was chosen for it. */
  kind: 'find' | 'party' | 'join';
}

/** What is known of a lobby that took somebody. */
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

type Value = Parameters<Parameters<typeof createStatement<TakenSeats>>[0]>[0];

/** Seats that are wanted, as rows. */
const asked = (value: Value) => sql`
  asked as (
    select seat.* from unnest(
      ${value('player_id')}::uuid[], ${value('lobby_id')}::uuid[], ${value('namespace_id')}::uuid[],
      ${value('kind')}::text[], ${value('address')}::text[], ${value('client')}::text[],
      ${value('players_max')}::int[], ${value('party')}::int[], ${value('ticket')}::uuid[]
    ) as seat (player_id, lobby_id, namespace_id, kind, address, client, players_max, party, ticket)
  )`;

/** The same, once it is told of; the count makes the namespaces' versions the first rows that are locked, here as everywhere. */
const PROPOSED = sql`proposed as (select asked.* from asked where (select count(*) from bumped) > 0)`;

/** How many come to each lobby, and how. */
const NUMBERS = sql`
  count(*) filter (where kind = 'find') as finds, count(*) filter (where kind = 'party') as parties,
  count(*) filter (where kind = 'join') as joins`;

/** The lobbies of `wanted` that take theirs. `awaited`: whether somebody waits for one who was there before. */
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

/** Seats those of a common table expression whose lobbies take them, and counts them with their clients. */
const seated = (value: Value, coming: SQL, playersMax?: SQL) => sql`
  seated as (
    insert into ${players} (player_id, lobby_id, namespace_id, address, client, create_ts, seat_deadline_ts)
    select coming.player_id, coming.lobby_id, coming.namespace_id, coming.address, coming.client, ${value('now')}::timestamptz,
      case when accepting.ready_ts is null then null else ${value('deadline')}::timestamptz end
    from ${coming} as coming join accepting on accepting.lobby_id = coming.lobby_id
  ),
  counted as (${countClients(sql`(select coming.* from ${coming} as coming join accepting on accepting.lobby_id = coming.lobby_id) as seated`, playersMax)})`;

/** The statement of {@link takeSeats}. */
const TAKE = createStatement<TakenSeats>(
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
        -- Whose turn it is, and who may not come, keeps nobody waiting.
        and not exists (
          select from passed where passed.ticket = waiting.ticket and passed.lobby_id = wanted.lobby_id
        )`)},
    ${seated(value, sql`admitted`)},
    left_queue as (${leaveQueue(sql`(select ticket from admitted join accepting on accepting.lobby_id = admitted.lobby_id)`, value('namespace_id'))}),
    ${raiseSeats('accepting')}
    select accepting.*, (${CROWDED}) as crowded
    from (select count(*) from bumped_seats) as bumped left join accepting on true`,
);

/** The statement of {@link takeSeatsOfFew}. Of several maxima of a client the lowest: more than that is for {@link TAKE} to decide. */
const TAKE_OF_FEW = createStatement<TakenSeats>(
  (value) => sql`
    with ${asked(value)},
    crowd as (
      select from (
        select namespace_id, client, count(*) as coming, min(players_max) as players_max from asked group by namespace_id, client
      ) as theirs left join ${clientCounts} using (namespace_id, client)
      where coalesce(player_count, 0) + coming > players_max
    ),
    ${bumpSelected(sql`select name from unnest(${value('bumped')}::text[]) as name where not exists (select from crowd)`, 'bumped')},
    ${PROPOSED},
    wanted as (
      select lobby_id, namespace_id, ${NUMBERS} from proposed group by lobby_id, namespace_id
    ),
    ${accepting(sql`finds + parties > 0`)},
    ${seated(value, sql`proposed`, sql`min(players_max)`)},
    ${raiseSeats('accepting')}
    select accepting.*, exists (select from crowd) as is_crowded
    from (select count(*) from bumped_seats) as bumped left join accepting on true`,
);

/** Seats that are to be taken: a list for each of what is known of them. */
type TakenSeats = { [Key in keyof ProposedSeat]: ProposedSeat[Key][] } & {
  /** Names of the topics. */
  bumped: string[];
  now: string;
  deadline: string;
};

/**
 * Takes many seats in one statement. For each lobby, all who were proposed or nobody, but for those whose client has too
 * many players already (I-M11): it and its server must not be ending (I-M5), it must have room for them (finds by its normal
 * maximum, parties by theirs, joins by the direct one) and, if anybody came by find, be open and not be what somebody waits
 * for who was there before (I-M12). This one and {@link takeSeatsOfFew} are the only places that fill lobbies after their founding (I-M1),
 * and that decide whether a closed one is found (I-M4). Whoever waited does not wait any more when he sits. Gives the lobbies that took
 * theirs, and who was not admitted.
 */
export async function takeSeats(
  connection: DedicatedConnection,
  seats: ProposedSeat[],
  moments: Moments,
): Promise<{ accepting: AcceptingLobby[]; crowded: Crowded[] }> {
  if (seats.length === 0) return { accepting: [], crowded: [] };
  const rows = await connection.execute<Row & { crowded: Crowded[] }>(TAKE(toLists(seats, moments)));
  // Who is crowded comes in every row: in one without a lobby when none took anybody.
  const lobbies_of_rows = rows.map(({ crowded: _crowded, ...lobby }) => lobby);
  return { accepting: toAccepting(lobbies_of_rows), crowded: rows[0]?.crowded ?? [] };
}

/**
 * The same at less cost, for a round in which nobody has waited for his turn and nobody's client has too many players. If
 * one has, nothing is taken, and nobody told: undefined.
 */
export async function takeSeatsOfFew(
  connection: DedicatedConnection,
  seats: ProposedSeat[],
  moments: Moments,
): Promise<{ accepting: AcceptingLobby[]; crowded: Crowded[] } | undefined> {
  const rows = await connection.execute<Row & { is_crowded: boolean }>(TAKE_OF_FEW(toLists(seats, moments)));
  if (rows[0]?.is_crowded) return undefined;
  return { accepting: toAccepting(rows.map(({ is_crowded: _is_crowded, ...lobby }) => lobby)), crowded: [] };
}

interface Moments {
  now: Date;
  /** By when those must have connected whose lobby is ready. */
  deadline: Date;
}

type Row = Record<string, unknown> & AcceptingLobby;

function toLists(seats: ProposedSeat[], { now, deadline }: Moments): TakenSeats {
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

/** There is a row without a lobby where none took anybody. */
function toAccepting(rows: AcceptingLobby[]): AcceptingLobby[] {
  return rows
    .filter(({ lobby_id }) => lobby_id !== null)
    .map((lobby) => ({ ...lobby, changed: Number(lobby.changed) }));
}
