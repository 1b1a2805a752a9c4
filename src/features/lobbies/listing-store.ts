import { and, eq, isNull, sql } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import { createQuery, createStatement } from '../../platform/database/statement.ts';
import { type LobbyWithoutState, WITHOUT_STATE } from './store.ts';
import { type LobbyRow, lobbies, players } from './tables.ts';

/** The maximum of a namespace (`lobby_count_max`). */
const LISTED_MAX = 32_767;

/** The columns of a lobby without its state, and how many of its players are connected. */
const counted = {
  ...WITHOUT_STATE,
  connected_count: sql<number>`(
    select count(*)::int from ${players} as present
    where present.lobby_id = ${lobbies}.lobby_id and present.remove_ts is null and present.connect_ts is not null
  )`,
};

type CountedLobby = LobbyWithoutState & { connected_count: number };

const COUNTED = createQuery<{ namespace_id: string }, CountedLobby[]>((queries, value) =>
  queries
    .select(counted)
    .from(lobbies)
    .where(and(eq(lobbies.namespace_id, value('namespace_id')), isNull(lobbies.stop_ts)))
    .orderBy(lobbies.create_ts, lobbies.lobby_id)
    .limit(LISTED_MAX),
);

/** Returns the running lobbies of a namespace, the oldest first. */
export async function selectCounted(queries: Queries, namespace_id: string): Promise<CountedLobby[]> {
  return await COUNTED(queries, { namespace_id });
}

const STATES = createStatement<{ lobby_ids: string[] }>(
  (value) => sql`
    select lobby_id, state from ${lobbies} where lobby_id = any(${value('lobby_ids')}::uuid[]) and state is not null`,
);

/** Returns the states of lobbies, by their ids. Lobbies without one are missing. */
export async function selectStates(queries: Queries, lobby_ids: string[]): Promise<Map<string, string>> {
  if (lobby_ids.length === 0) return new Map();
  const rows = await queries.execute<{ lobby_id: string; state: string }>(STATES({ lobby_ids }));
  return new Map(rows.map(({ lobby_id, state }) => [lobby_id, state]));
}

/** The columns of a lobby that players see. */
export type VisibleLobby = Pick<
  LobbyRow,
  'lobby_id' | 'namespace_id' | 'region' | 'game_mode' | 'state' | 'is_closed'
> &
  Pick<LobbyRow, 'max_players_normal' | 'max_players_direct' | 'max_players_party'> & {
    connected_count: number;
    is_ready: boolean;
    is_stopped: boolean;
  };

const VISIBLE = createStatement<{ lobby_ids: string[] }>(
  (value) => sql`
    select lobby_id, namespace_id, region, game_mode, state, is_closed,
      max_players_normal, max_players_direct, max_players_party,
      ready_ts is not null as is_ready, stop_ts is not null as is_stopped,
      (select count(*)::int from ${players} as present
       where present.lobby_id = visible.lobby_id and present.remove_ts is null and present.connect_ts is not null
      ) as connected_count
    from ${lobbies} as visible where lobby_id = any(${value('lobby_ids')}::uuid[])`,
);

/**
 * Returns lobbies by their ids, running or stopped, of any namespace; the caller checks the namespace. It runs after
 * every watched change, so it reads only the columns that are shown.
 */
export async function selectVisible(queries: Queries, lobby_ids: string[]): Promise<VisibleLobby[]> {
  return await queries.execute<VisibleLobby>(VISIBLE({ lobby_ids }));
}

/** Returns the number of players with a seat, by version, game mode and region. */
export async function selectPlayerCounts(queries: Queries, namespace_id: string) {
  return await queries
    .select({
      version_id: lobbies.version_id,
      game_mode: lobbies.game_mode,
      region: lobbies.region,
      player_count: sql<number>`sum(${lobbies.player_count})::int`,
    })
    .from(lobbies)
    .where(and(eq(lobbies.namespace_id, namespace_id), isNull(lobbies.stop_ts)))
    .groupBy(lobbies.version_id, lobbies.game_mode, lobbies.region);
}
