import { and, asc, eq, gt, isNull, sql } from 'drizzle-orm';
import type { Queries } from '../../../../platform/database/database.ts';
import { isAnyOf } from '../../../../platform/database/lists.ts';
import { createQuery } from '../../../../platform/database/statement.ts';
import { isEnding } from '../../../servers/servers.ts';
import { createChangesQuery } from '../../changed-lobbies-store.ts';
import { BEFORE_ALL_IDS, type LobbyRow, lobbies } from '../../tables.ts';

/** Maximum number of lobbies that one statement reads, so that it is short and no other work waits for it. */
export const PAGE_MAX = 1_000;
/** Maximum number of changes that one statement reads. Beyond that, reading all lobbies again in pages is better. */
export const CHANGES_MAX = 4 * PAGE_MAX;
const ENDING_MAX = 100_000;

/** The columns that the cache keeps. They are small, because a namespace may have many lobbies. */
const KEPT = {
  lobby_id: lobbies.lobby_id,
  version_id: lobbies.version_id,
  game_mode: lobbies.game_mode,
  region: lobbies.region,
  tags: lobbies.tags,
  is_closed: lobbies.is_closed,
  publicity: lobbies.publicity,
  max_players_normal: lobbies.max_players_normal,
  max_players_direct: lobbies.max_players_direct,
  max_players_party: lobbies.max_players_party,
  player_count: lobbies.player_count,
};
const COLUMNS = { ...KEPT, is_stopped: sql<boolean>`stop_ts is not null` };

/** A lobby as the cache reads it. */
export type CachedLobby = Pick<LobbyRow, keyof typeof KEPT> & { is_stopped: boolean };

const RUNNING = createQuery<{ namespace_id: string; after: string }, CachedLobby[]>((queries, value) =>
  queries
    .select(COLUMNS)
    .from(lobbies)
    .where(
      and(
        eq(lobbies.namespace_id, value('namespace_id')),
        isNull(lobbies.stop_ts),
        gt(lobbies.lobby_id, value('after')),
      ),
    )
    .orderBy(asc(lobbies.lobby_id))
    .limit(PAGE_MAX),
);

/** Returns a page of a namespace's running lobbies, ordered by id, after the last one of the previous page. */
export async function selectRunning(
  queries: Queries,
  namespace_id: string,
  after = BEFORE_ALL_IDS,
): Promise<CachedLobby[]> {
  return await RUNNING(queries, { namespace_id, after });
}

/** Reads the lobbies that changed with a range of versions of a namespace's list. */
export const selectChanged = createChangesQuery<CachedLobby>(
  sql.join(
    Object.values(KEPT).map(({ name }) => sql.identifier(name)),
    sql`, `,
  ),
  CHANGES_MAX,
);

/** Returns lobbies by their ids, running or stopped, and whether their servers are ending. */
export async function selectLobbies(
  queries: Queries,
  lobby_ids: string[],
): Promise<(CachedLobby & { is_ending: boolean })[]> {
  return await queries
    .select({ ...COLUMNS, is_ending: sql<boolean>`${isEnding(lobbies.server_id)}` })
    .from(lobbies)
    .where(isAnyOf(lobbies.lobby_id, lobby_ids))
    .orderBy(asc(lobbies.lobby_id))
    .limit(lobby_ids.length);
}

/** Returns the ids of a namespace's running lobbies whose servers are ending or have ended. */
export async function selectIdsOnEndingServers(queries: Queries, namespace_id: string): Promise<string[]> {
  const rows = await queries
    .select({ lobby_id: lobbies.lobby_id })
    .from(lobbies)
    .where(and(eq(lobbies.namespace_id, namespace_id), isNull(lobbies.stop_ts), isEnding(lobbies.server_id)))
    .orderBy(asc(lobbies.lobby_id))
    .limit(ENDING_MAX);
  return rows.map(({ lobby_id }) => lobby_id);
}
