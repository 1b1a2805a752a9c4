import { and, desc, eq, gt, gte, isNotNull, isNull, lt, or, sql } from 'drizzle-orm';
import type { Queries } from '../../../platform/database/database.ts';
import { timestamptz } from '../../../platform/database/moments.ts';
import { type LobbyWithoutState, WITHOUT_STATE } from '../store.ts';
import { type LobbyRow, lobbies, type PlayerRow, players } from '../tables.ts';

const HISTORY_PAGE = 64;
const SEATED_MAX = 1_000;
const EXPORT_PAGE = 1_000;

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
