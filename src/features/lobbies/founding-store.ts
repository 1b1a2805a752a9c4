import { eq, sql } from 'drizzle-orm';
import type { Tx } from '../../platform/database/database.ts';
import { timestamptz } from '../../platform/database/moments.ts';
import { topics } from '../topics.ts';
import {
  ADMIT,
  type Claim,
  CROWDED,
  type Crowded,
  countClients,
  LAST_PLACE,
  leaveQueue,
  selectOver,
  waitsFor,
} from './admission-store.ts';
import { touchLobby } from './store.ts';
import { type LobbyRow, lobbies, lobbyCounts, players, queuedFinds } from './tables.ts';

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
 * What is known of a lobby that is to be made before anything is locked or told of: whether it is refused because there are
 * as many as may be, or because its maker has too many players; and who has too many.
 */
export async function foresee(
  tx: Tx,
  namespace_id: string,
  founders: Claim[],
  lobby_count_max: number,
): Promise<{ is_refused: boolean; crowded: Crowded[] }> {
  const crowded = await selectOver(
    tx,
    founders.map((founder) => ({ ...founder, namespace_id })),
  );
  const [row] = await tx
    .select({ lobby_count: lobbyCounts.lobby_count })
    .from(lobbyCounts)
    .where(eq(lobbyCounts.namespace_id, namespace_id));
  const is_full = (row?.lobby_count ?? 0) >= lobby_count_max;
  return { is_refused: is_full || crowded.some(({ party }) => party === 0), crowded };
}

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
      ${leaveQueue(sql`(select ticket from admitted where exists (select from counted_lobby))`, sql`array[${namespace_id}]`)}
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
      ${timestamptz(lobby.create_ts)}
    from unnest(${column('player_id')}::uuid[], ${column('address')}::text[], ${column('client')}::text[])
      as founder (player_id, address, client)`);
}
