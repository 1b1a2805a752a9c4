import { and, desc, eq, gt, gte, isNotNull, isNull, lt, or, sql } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import { timestamptz } from '../../platform/database/moments.ts';
import { createQuery, createStatement } from '../../platform/database/statement.ts';
import { type LobbyWithoutState, WITHOUT_STATE } from './store.ts';
import { type LobbyRow, lobbies, type PlayerRow, players } from './tables.ts';

/** The maximum of a namespace (`lobby_count_max`). */
const LISTED_MAX = 32_767;
const HISTORY_PAGE = 64;
const SEATED_MAX = 1_000;
const EXPORT_PAGE = 1_000;

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

/** Returns the players who have a seat in a lobby, in the order in which they got it. */
export async function selectSeated(queries: Queries, lobby_id: string): Promise<PlayerRow[]> {
  return await queries
    .select()
    .from(players)
    .where(and(eq(players.lobby_id, lobby_id), isNull(players.remove_ts)))
    .orderBy(players.create_ts, players.player_id)
    .limit(SEATED_MAX);
}

/** Returns the query for the players who left a lobby most recently, the last one first. */
export function selectLeft(
  queries: Queries,
  { lobby_id, namespace_id }: Pick<LobbyRow, 'lobby_id' | 'namespace_id'>,
  limit: number,
) {
  return queries
    .select()
    .from(players)
    .where(and(eq(players.lobby_id, lobby_id), eq(players.namespace_id, namespace_id), isNotNull(players.remove_ts)))
    .orderBy(desc(players.remove_ts), desc(players.player_id))
    .limit(limit);
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

/** Returns the newest 64 lobbies of a namespace, running and stopped, that were created before a given time. */
export async function selectHistory(
  queries: Queries,
  namespace_id: string,
  before: Date | undefined,
): Promise<LobbyWithoutState[]> {
  return await queries
    .select(WITHOUT_STATE)
    .from(lobbies)
    .where(and(eq(lobbies.namespace_id, namespace_id), before ? lt(lobbies.create_ts, before) : undefined))
    .orderBy(desc(lobbies.create_ts), desc(lobbies.lobby_id))
    .limit(HISTORY_PAGE);
}

/** Yields the pages of a game's lobbies that ran within a window, newest first. */
export async function* selectWithin(
  queries: Queries,
  game_id: string,
  window: { start: Date; end: Date },
): AsyncGenerator<LobbyWithoutState[]> {
  const oldest = await selectOldestSince(queries, game_id, window.start);
  if (oldest === undefined) return;
  let last: LobbyWithoutState | undefined;
  do {
    const page = await selectPage(queries, game_id, { ...window, oldest }, last);
    yield page;
    last = page[EXPORT_PAGE - 1];
  } while (last);
}

/**
 * Returns when the oldest of a game's lobbies that run, or stopped after a moment, was created. The subquery is
 * materialized, because PostgreSQL would otherwise search the index from the game's first lobby on.
 */
async function selectOldestSince(queries: Queries, game_id: string, moment: Date): Promise<Date | undefined> {
  const [row] = await queries.execute<{ oldest: number | null }>(sql`
    with since as materialized (
      select create_ts from ${lobbies} where game_id = ${game_id} and stop_ts > ${timestamptz(moment)}
      union all
      select create_ts from ${lobbies} where game_id = ${game_id} and stop_ts is null
    )
    select (extract(epoch from min(create_ts)) * 1000)::float8 as oldest from since`);
  return row?.oldest == null ? undefined : new Date(row.oldest);
}

/** Returns the page after a lobby. */
async function selectPage(
  queries: Queries,
  game_id: string,
  { start, end, oldest }: { start: Date; end: Date; oldest: Date },
  after: Pick<LobbyRow, 'create_ts' | 'lobby_id'> | undefined,
): Promise<LobbyWithoutState[]> {
  return await queries
    .select(WITHOUT_STATE)
    .from(lobbies)
    .where(
      and(
        eq(lobbies.game_id, game_id),
        gte(lobbies.create_ts, oldest),
        lt(lobbies.create_ts, end),
        or(isNull(lobbies.stop_ts), gt(lobbies.stop_ts, start)),
        after &&
          sql`(${lobbies.create_ts}, ${lobbies.lobby_id}) < (${timestamptz(after.create_ts)}, ${after.lobby_id}::uuid)`,
      ),
    )
    .orderBy(desc(lobbies.create_ts), desc(lobbies.lobby_id))
    .limit(EXPORT_PAGE);
}
