import { and, asc, eq, gt, sql } from 'drizzle-orm';
import { after, CLOCK_SKEW_MAX_MS, type Clock } from '../../platform/clock.ts';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { bumpSelected, touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type GameRow, games } from './tables.ts';

/** Games of a group. */
export const GAMES_MAX = 1_000;
const LISTED_GAMES_MAX = 10_000;
const GAMES_AT_ONCE = 1_000;

/** Inserts a game. `member_ids`: the members of its group, whose lists of games change. */
export async function insertGame(tx: Tx, row: GameRow, member_ids: string[]): Promise<void> {
  await touch(tx, [topics.game(row.game_id), topics.gameNamed(row.name_id), ...member_ids.map(topics.gamesOf)]);
  await tx.insert(games).values(row);
}

/** Returns how many games a group has. */
export const countGamesOf = (tx: Tx, developer_group_id: string): Promise<number> =>
  tx.$count(games, eq(games.developer_group_id, developer_group_id));

/** Updates a game. `member_ids`: the members of its group, whose lists of games change. */
export async function updateGame(
  tx: Tx,
  game_id: string,
  values: Partial<GameRow>,
  member_ids: string[],
): Promise<void> {
  await touch(tx, [topics.game(game_id), ...member_ids.map(topics.gamesOf)]);
  await tx.update(games).set(values).where(eq(games.game_id, game_id));
}

/** A game whose row has an outdated number of players, with the current number. */
export type Miscounted = Pick<GameRow, 'game_id' | 'developer_group_id' | 'player_count'>;

/** Returns a batch of the games whose row has an outdated number of players; only those of a group if one is given. */
export async function selectMiscounted(
  queries: Queries,
  counts: ReadonlyMap<string, number>,
  developer_group_id?: string,
): Promise<Miscounted[]> {
  const is_in_group = developer_group_id === undefined ? sql`true` : sql`g.developer_group_id = ${developer_group_id}`;
  return await queries.execute<Miscounted & Record<string, unknown>>(sql`
    select game_id, g.developer_group_id, coalesce(counted.player_count, 0) as player_count
    from ${games} g
    left join unnest(${sql.param([...counts.keys()])}::uuid[], ${sql.param([...counts.values()])}::int[])
      as counted (game_id, player_count) using (game_id)
    where g.player_count <> coalesce(counted.player_count, 0) and ${is_in_group}
    order by game_id limit ${GAMES_AT_ONCE}`);
}

/** Updates the player counts of games of one group. `member_ids`: the members of the group, whose lists change. */
export async function updatePlayerCounts(tx: Tx, counted: Miscounted[], member_ids: string[]): Promise<void> {
  await touch(tx, [...counted.map(({ game_id }) => topics.game(game_id)), ...member_ids.map(topics.gamesOf)]);
  const [ids, counts] = [counted.map(({ game_id }) => game_id), counted.map(({ player_count }) => player_count)];
  await tx.execute(sql`
    update ${games} set player_count = counted.player_count
    from unnest(${sql.param(ids)}::uuid[], ${sql.param(counts)}::int[]) as counted (game_id, player_count)
    where ${games.game_id} = counted.game_id`);
}

export async function selectGame(queries: Queries, game_id: string): Promise<GameRow | undefined> {
  const [row] = await queries.select().from(games).where(eq(games.game_id, game_id));
  return row;
}

/** Returns a game and locks it against changes until the transaction ends. Other transactions may hold the same lock. */
export async function lockGameAgainstChanges(tx: Tx, game_id: string): Promise<GameRow | undefined> {
  const [row] = await tx.select().from(games).where(eq(games.game_id, game_id)).for('share');
  return row;
}

/** Revokes the tokens of one game, or of all games of a group. */
export async function revokeTokens(
  tx: Tx,
  which: Pick<GameRow, 'game_id'> | Pick<GameRow, 'developer_group_id'>,
  clock: Clock,
): Promise<void> {
  const is_selected =
    'game_id' in which ? eq(games.game_id, which.game_id) : eq(games.developer_group_id, which.developer_group_id);
  const names = sql`select ${topics.game('')}::text || ${games.game_id} from ${games} where ${is_selected} order by ${games.game_id}`;
  await tx.execute(sql`with ${bumpSelected(names, 'bumped')} select count(*) from bumped`);
  await tx.execute(sql`select from ${games} where ${is_selected} order by ${games.game_id} for no key update`);
  // Also revokes tokens of processes whose clocks are ahead, and tokens whose time is that of the last revocation.
  const moment = after(clock.now(), CLOCK_SKEW_MAX_MS);
  const next = sql`${games.tokens_not_before} + interval '1 millisecond'`;
  await tx
    .update(games)
    .set({ tokens_not_before: sql`greatest(${next}, ${moment.toISOString()}::timestamptz)` })
    .where(is_selected);
}

export async function selectGameByNameId(queries: Queries, name_id: string): Promise<GameRow | undefined> {
  const [row] = await queries.select().from(games).where(eq(games.name_id, name_id));
  return row;
}

/** Returns the group's oldest game with a display name. */
export async function selectGameByDisplayName(
  tx: Tx,
  developer_group_id: string,
  display_name: string,
): Promise<GameRow | undefined> {
  const [row] = await tx
    .select()
    .from(games)
    .where(and(eq(games.developer_group_id, developer_group_id), eq(games.display_name, display_name)))
    .orderBy(asc(games.create_ts), asc(games.game_id))
    .limit(1);
  return row;
}

/** Returns the developer groups of games. */
export async function selectGroupsOf(
  queries: Queries,
  game_ids: string[],
): Promise<Pick<GameRow, 'game_id' | 'developer_group_id'>[]> {
  return await queries
    .select({ game_id: games.game_id, developer_group_id: games.developer_group_id })
    .from(games)
    .where(sql`${games.game_id} = any(${sql.param(game_ids)}::uuid[])`)
    .orderBy(asc(games.game_id))
    .limit(game_ids.length);
}

/** Returns ids of a group's games after the id `after_id`, in order. */
export async function selectGameIdsOf(
  queries: Queries,
  group_id: string,
  after_id: string | undefined,
): Promise<string[]> {
  const is_later = after_id === undefined ? undefined : gt(games.game_id, after_id);
  const rows = await queries
    .select({ game_id: games.game_id })
    .from(games)
    .where(and(eq(games.developer_group_id, group_id), is_later))
    .orderBy(asc(games.game_id))
    .limit(GAMES_AT_ONCE);
  return rows.map(({ game_id }) => game_id);
}

/** Returns the games of groups, ordered by display name. */
export async function selectGamesOf(queries: Queries, group_ids: string[]): Promise<GameRow[]> {
  return await queries
    .select()
    .from(games)
    .where(sql`${games.developer_group_id} = any(${sql.param(group_ids)}::uuid[])`)
    .orderBy(asc(games.display_name), asc(games.game_id))
    .limit(LISTED_GAMES_MAX);
}
