import { type Column, type SQL, sql } from 'drizzle-orm';
import type { Tx } from '../../../platform/database/database.ts';
import { timestamptz } from '../../../platform/database/moments.ts';
import { deleteTopics } from '../../../platform/watch/versions.ts';
import { topics } from '../../topics.ts';
import { lobbies, players } from '../tables.ts';

const PLAYERS_AT_ONCE = 2_000;
const LOBBIES_AT_ONCE = 500;

/**
 * Deletes players who got a seat before a given time and no longer have it. Checks the next 2,000 players after an id. Ids
 * begin with the time of the request, so their order is nearly that of the seats; what a pass misses, the next one finds.
 * Returns the last id; undefined once it reaches players who got seats after that time.
 */
export async function deletePlayersBefore(tx: Tx, before: Date, after_id: string): Promise<string | undefined> {
  const [row] = await tx.execute<{ last: string | null }>(sql`
    with page as materialized (
      select player_id, remove_ts, create_ts < ${timestamptz(before)} as is_old from ${players}
      where player_id > ${after_id}::uuid order by player_id limit ${PLAYERS_AT_ONCE}
    ),
    deleted as (
      delete from ${players} where player_id = any(array(select player_id from page where is_old and remove_ts is not null))
    )
    select case when is_old then player_id end as last from page order by player_id desc limit 1`);
  return row?.last ?? undefined;
}

/** Deletes a batch of lobbies that stopped before a given time. Returns their namespaces; none if no such lobby remains. */
export async function deleteLobbiesBefore(tx: Tx, before: Date): Promise<string[]> {
  const deleted = await tx.execute<{ lobby_id: string; namespace_id: string }>(sql`
    delete from ${lobbies} where lobby_id = any(array(
      select lobby_id from ${lobbies} where stop_ts < ${timestamptz(before)} order by stop_ts limit ${LOBBIES_AT_ONCE}
    ))
    returning lobby_id, namespace_id`);
  const names = deleted.flatMap(({ lobby_id }) => [topics.lobby(lobby_id), topics.connectedIn(lobby_id)]);
  await deleteTopics(tx, names);
  return [...new Set(deleted.map(({ namespace_id }) => namespace_id))];
}

/** Returns an SQL condition: the server with the id in this column is that of a lobby, running or stopped. */
export function hasLobbyOn(server_id: Column): SQL {
  return sql`exists (select from ${lobbies} where ${lobbies.server_id} = ${server_id})`;
}
