import { type SQL, sql } from 'drizzle-orm';
import type { Tx } from '../../../../platform/database/database.ts';
import { timestamptz } from '../../../../platform/database/moments.ts';
import { lockTopics } from '../../../../platform/watch/versions.ts';
import { topics } from '../../../topics.ts';
import { countLobbies, touchLobby } from '../../store.ts';
import { type LobbyRow, lobbies, lobbyCounts, players, queuedFinds } from '../../tables.ts';
import {
  LAST_PLACE,
  leaveQueue,
  listOverAlone,
  listOverLimit,
  type OverLimit,
  type RequestedSeat,
  waitsFor,
} from '../rounds/admission-store.ts';
import { type ClientLists, HAS_NUMBER, listClients, numberPlayers } from '../rounds/client-numbers-store.ts';

/** The properties of a new lobby that decide whether it may be created. */
export type LobbyToCreate = Pick<
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
 * Checks limits without a lock, so that a lobby that is refused wakes no watcher. Returns whether a new lobby is
 * refused (the namespace has its maximum of lobbies, or the creator's client is over its limit), and the requests that
 * are over their client's limit.
 */
export async function precheckLobby(
  tx: Tx,
  namespace_id: string,
  requested: RequestedSeat[],
  lobby_count_max: number,
): Promise<{ is_refused: boolean; over_limit: OverLimit[] }> {
  const over_limit = await selectOverLimit(tx, namespace_id, requested);
  const is_full = (await countLobbies(tx, namespace_id)) >= lobby_count_max;
  return { is_refused: is_full || over_limit.some(({ request_number }) => request_number === 0), over_limit };
}

/** Returns the requests that exceed their client's limit by themselves. */
async function selectOverLimit(tx: Tx, namespace_id: string, requested: RequestedSeat[]): Promise<OverLimit[]> {
  if (requested.length === 0) return [];
  const column = (key: keyof RequestedSeat) => sql.param(requested.map((seat) => seat[key]));
  const rows = await tx.execute<{ request_number: number }>(sql`
    select request_number from (
      select client, request_number, count(*) as players, max(players_max) as players_max
      from unnest(${column('client')}::text[], ${column('players_max')}::int[], ${column('request_number')}::int[])
        as seat (client, players_max, request_number)
      group by client, request_number
    ) as own
    where players_max < players + (
      select count(*) from ${players} as seated
      where seated.namespace_id = ${namespace_id}::uuid and seated.client = own.client and ${HAS_NUMBER}
    )
    order by request_number`);
  return rows.map(({ request_number }) => ({ request_number, is_over_alone: true }));
}

/**
 * Counts a new lobby in its namespace, removes its first requests from the queue, and bumps the namespace's list. Does
 * none of this if the creator (the first request) is over its client's limit, if the namespace has its maximum of
 * lobbies, or if an earlier find waits for the lobby (I-M12). Returns the new version of the list, and the requests
 * that are over their client's limit.
 */
export async function countLobby(
  tx: Tx,
  lobby: LobbyToCreate,
  requested: RequestedSeat[],
  lobby_count_max: number,
): Promise<{ changed: number | undefined; over_limit: OverLimit[] }> {
  const { namespace_id } = lobby;
  const column = (key: keyof RequestedSeat) => sql.param(requested.map((seat) => seat[key]));
  const listOf = clientListsOf(namespace_id, requested);
  const has_queued = requested.some(({ ticket }) => ticket !== null);
  const queue = has_queued ? [topics.queueOf(namespace_id)] : [];
  // Locks the topics before any other row, as all transactions do, and bumps them only for a lobby that is counted.
  await lockTopics(tx, [topics.lobbiesOf(namespace_id), ...queue]);
  const created = {
    namespace_id: sql`${namespace_id}::uuid`,
    version_id: sql`${lobby.version_id}::uuid`,
    game_mode: sql`${lobby.game_mode}::text`,
    region: sql`${lobby.region}::text`,
    tags: sql`${JSON.stringify(lobby.tags)}::jsonb`,
  };
  const seats_max = sql`case when waiting.seats > 1 then ${lobby.max_players_party}::int else ${lobby.max_players_normal}::int end`;
  const [row] = await tx.execute<{ is_counted: boolean; over_limit: OverLimit[] }>(sql`
    with proposed as (
      select seat.* from unnest(
        ${column('players_max')}::int[], ${column('request_number')}::int[], ${column('ticket')}::uuid[],
        ${listOf('client_index')}::int[], ${listOf('nth_of_client')}::int[], ${listOf('through_request')}::int[]
      ) as seat (players_max, request_number, ticket, client_index, nth_of_client, through_request)
    ),
    ${numberPlayers(listOf)},
    within_limit as (select * from numbered where players_after <= players_max),
    ${listOverAlone(sql`ticket`)},
    places as (
      select coalesce(min(coalesce(place, ${LAST_PLACE})) filter (where request_number = 0), ${LAST_PLACE}) as first_place,
        coalesce(max(coalesce(place, ${LAST_PLACE})), ${LAST_PLACE}) as last_place,
        coalesce(array_agg(ticket) filter (where ticket is not null), '{}') as tickets,
        bool_or(request_number = 0) as has_creator
      from within_limit left join (
        select ticket, place from ${queuedFinds} where namespace_id = ${namespace_id}::uuid
      ) as queued using (ticket)
    ),
    counted_lobby as (
      insert into ${lobbyCounts} (namespace_id, lobby_count)
      select ${namespace_id}::uuid, 1 from places
      where (${requested.length} = 0 or has_creator)
        and not exists (
          select from ${queuedFinds} as waiting
          where waiting.namespace_id = ${namespace_id}::uuid and waiting.ticket <> all(tickets)
            and not exists (select from over_alone where over_alone.ticket = waiting.ticket)
            -- A find before the creator would create a lobby itself, so it goes first. A find between the creator and
            -- the last request within its limit counts only if it could get its seats in this lobby.
            and (waiting.place < first_place or waiting.place < last_place and ${waitsFor(created, seats_max)})
        )
      on conflict (namespace_id) do update set lobby_count = ${lobbyCounts}.lobby_count + 1
        where ${lobbyCounts}.lobby_count < ${lobby_count_max}
      returning lobby_count
    ),
    left_queue as (
      ${leaveQueue(sql`select ${namespace_id}::uuid, ticket from within_limit where exists (select from counted_lobby)`)}
    )
    select exists (select from counted_lobby) as is_counted,
      ${listOverLimit(sql`within_limit where exists (select from counted_lobby)`)} as over_limit`);
  const changed = row?.is_counted ? await touchLobby(tx, lobby, queue) : undefined;
  return { changed, over_limit: row?.over_limit ?? [] };
}

/**
 * Inserts a lobby with the seats of its first players. The transaction has the lock of the namespace's list
 * (`countLobby`), so no other transaction gives the same client numbers.
 */
export async function insertLobby(tx: Tx, lobby: LobbyRow, first_players: RequestedSeat[]): Promise<void> {
  const column = (key: keyof RequestedSeat) => sql.param(first_players.map((player) => player[key]));
  const listOf = clientListsOf(lobby.namespace_id, first_players);
  await tx.insert(lobbies).values(lobby);
  await tx.execute(sql`
    with proposed as (
      select seat.* from unnest(
        ${column('player_id')}::uuid[], ${column('address')}::text[], ${column('client')}::text[],
        ${listOf('client_index')}::int[], ${listOf('nth_of_client')}::int[], ${listOf('through_request')}::int[]
      ) as seat (player_id, address, client, client_index, nth_of_client, through_request)
    ),
    ${numberPlayers(listOf)}
    insert into ${players} (player_id, lobby_id, namespace_id, address, client, client_number, create_ts)
    select player_id, ${lobby.lobby_id}::uuid, ${lobby.namespace_id}::uuid, address, client, client_number,
      ${timestamptz(lobby.create_ts)}
    from numbered`);
}

/** Returns a function that returns the lists of the clients of a namespace's proposed players. */
function clientListsOf(namespace_id: string, requested: RequestedSeat[]): (name: keyof ClientLists) => SQL {
  const lists = listClients(
    requested.map((seat) => ({ ...seat, namespace_id })),
    null,
  );
  return (name) => sql`${sql.param(lists[name])}`;
}
