import { and, desc, eq, isNotNull, isNull, or, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type BuildRow, builds } from './tables.ts';

const BUILDS_MAX = 1_000;

/** The scope of a query: a whole game, or one of its environments. */
export interface BuildScope {
  game_id: string;
  namespace_id?: string;
}

export async function insertBuild(tx: Tx, row: BuildRow): Promise<void> {
  await touch(tx, [topics.buildsOf(row.game_id)]);
  await tx.insert(builds).values(row);
}

/** Returns a build within the scope. Builds of the whole game are in each environment. */
export async function selectBuild(
  queries: Queries,
  scope: BuildScope,
  build_id: string,
): Promise<BuildRow | undefined> {
  const [row] = await queries
    .select()
    .from(builds)
    .where(and(within(scope), eq(builds.build_id, build_id)));
  return row;
}

export async function selectBuildByUpload(queries: Queries, upload_id: string): Promise<BuildRow | undefined> {
  const [row] = await queries.select().from(builds).where(eq(builds.upload_id, upload_id));
  return row;
}

/** Returns the builds that have all of the tags, newest first. */
export async function selectBuilds(
  queries: Queries,
  scope: BuildScope,
  tags: Record<string, string>,
): Promise<BuildRow[]> {
  return await queries
    .select()
    .from(builds)
    .where(and(within(scope), sql`${builds.tags} @> ${JSON.stringify(tags)}::jsonb`))
    .orderBy(desc(builds.create_ts), desc(builds.build_id))
    .limit(BUILDS_MAX);
}

/** Returns which of a game's builds are complete. */
export async function selectComplete(queries: Queries, game_id: string, build_ids: string[]): Promise<Set<string>> {
  const rows = await queries
    .select({ build_id: builds.build_id })
    .from(builds)
    .where(
      and(
        eq(builds.game_id, game_id),
        isNotNull(builds.complete_ts),
        sql`${builds.build_id} = any(${sql.param(build_ids)}::uuid[])`,
      ),
    );
  return new Set(rows.map(({ build_id }) => build_id));
}

export async function setComplete(
  tx: Tx,
  { build_id, game_id }: Pick<BuildRow, 'build_id' | 'game_id'>,
  now: Date,
): Promise<void> {
  await touch(tx, [topics.buildsOf(game_id)]);
  await tx.update(builds).set({ complete_ts: now }).where(eq(builds.build_id, build_id));
}

/** Records the digest of a build's file. */
export async function setDigest(queries: Queries, build_id: string, sha256: string): Promise<void> {
  await queries.update(builds).set({ sha256 }).where(eq(builds.build_id, build_id));
}

export interface TagsPatch {
  /** A tag of null is removed. */
  tags: Record<string, string | null>;
  exclusive_tags: string[];
}

/**
 * Adds tags to a build of an environment, and removes those that are null. An exclusive pair is removed from every other
 * build of the environment. Builds of the whole game have no tags, so they are not found.
 */
export async function mergeTags(
  tx: Tx,
  scope: Required<BuildScope>,
  build_id: string,
  { tags, exclusive_tags }: TagsPatch,
): Promise<BuildRow | undefined> {
  const own = and(eq(builds.game_id, scope.game_id), eq(builds.namespace_id, scope.namespace_id));
  // Changes of tags of one game run one after another, so an exclusive tag sees those that others have added.
  await touch(tx, [topics.buildsOf(scope.game_id)]);
  for (const key of exclusive_tags) {
    const pair = JSON.stringify({ [key]: tags[key] });
    await tx
      .update(builds)
      .set({ tags: sql`${builds.tags} - ${key}::text` })
      .where(and(own, sql`${builds.tags} @> ${pair}::jsonb`, sql`${builds.build_id} <> ${build_id}`));
  }
  const removed = Object.keys(tags).filter((key) => tags[key] === null);
  const added = Object.fromEntries(Object.entries(tags).filter(([, tag]) => tag !== null));
  const [row] = await tx
    .update(builds)
    .set({ tags: sql`(${builds.tags} - ${sql.param(removed)}::text[]) || ${JSON.stringify(added)}::jsonb` })
    .where(and(own, eq(builds.build_id, build_id)))
    .returning();
  return row;
}

function within({ game_id, namespace_id }: BuildScope) {
  const in_game = eq(builds.game_id, game_id);
  if (namespace_id === undefined) return in_game;
  return and(in_game, or(eq(builds.namespace_id, namespace_id), isNull(builds.namespace_id)));
}
