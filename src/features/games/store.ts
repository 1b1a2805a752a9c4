import { asc, eq, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type GameRow, games } from './tables.ts';

const GAMES_MAX = 1_000;

/** `watchers`: the identities whose list of games grows by this one. */
export async function insertGame(tx: Tx, row: GameRow, watchers: string[]): Promise<void> {
  await touch(tx, [topics.game(row.game_id), ...watchers.map(topics.gamesOf)]);
  await tx.insert(games).values(row);
}

/** `watchers`: the identities whose lists of games show it. */
export async function updateGame(tx: Tx, game_id: string, values: Partial<GameRow>, watchers: string[]): Promise<void> {
  await touch(tx, [topics.game(game_id), ...watchers.map(topics.gamesOf)]);
  await tx.update(games).set(values).where(eq(games.game_id, game_id));
}

export async function selectGame(queries: Queries, game_id: string): Promise<GameRow | undefined> {
  const [row] = await queries.select().from(games).where(eq(games.game_id, game_id));
  return row;
}

export async function selectGameByName(queries: Queries, name_id: string): Promise<GameRow | undefined> {
  const [row] = await queries.select().from(games).where(eq(games.name_id, name_id));
  return row;
}

/** The games of some groups, by display name. */
export async function selectGamesOf(queries: Queries, group_ids: string[]): Promise<GameRow[]> {
  return await queries
    .select()
    .from(games)
    .where(sql`${games.developer_group_id} = any(${sql.param(group_ids)}::uuid[])`)
    .orderBy(asc(games.display_name), asc(games.game_id))
    .limit(GAMES_MAX);
}
