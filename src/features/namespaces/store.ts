import { and, asc, desc, eq, lt, sql } from 'drizzle-orm';
import type { Clock } from '../../platform/clock.ts';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { timestamptz } from '../../platform/database/moments.ts';
import { touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type NamespaceRow, type NamespaceVersionRow, namespaces, namespaceVersions } from './tables.ts';

/** Namespaces of a game. */
export const NAMESPACES_MAX = 1_000;
const ALL_NAMESPACES_MAX = 100_000;

/** A namespace and its game. Queries check both, so that no game reaches another's namespace. */
export interface NamespaceScope {
  game_id: string;
  namespace_id: string;
}

/** Inserts a namespace. Returns false if its game has the maximum of namespaces. */
export async function insertNamespace(
  tx: Tx,
  row: Pick<NamespaceRow, 'namespace_id' | 'game_id' | 'name_id' | 'display_name' | 'version_id' | 'create_ts'>,
): Promise<boolean> {
  // Until the transaction ends, no other namespace of the game is created.
  await touch(tx, [topics.game(row.game_id), topics.namespaceNamed(row.game_id, row.name_id)]);
  if ((await tx.$count(namespaces, eq(namespaces.game_id, row.game_id))) >= NAMESPACES_MAX) return false;
  await tx.insert(namespaces).values(row);
  await insertDeployment(tx, row, row.create_ts);
  return true;
}

export async function selectNamespace(queries: Queries, namespace_id: string): Promise<NamespaceRow | undefined> {
  const [row] = await queries.select().from(namespaces).where(eq(namespaces.namespace_id, namespace_id));
  return row;
}

/** Returns the id of a game's namespace by its name. */
export async function selectNamespaceByNameId(
  queries: Queries,
  game_id: string,
  name_id: string,
): Promise<string | undefined> {
  const [row] = await queries
    .select({ namespace_id: namespaces.namespace_id })
    .from(namespaces)
    .where(and(eq(namespaces.game_id, game_id), eq(namespaces.name_id, name_id)));
  return row?.namespace_id;
}

/** Returns the namespaces of a game, ordered by display name. */
export async function selectNamespaces(queries: Queries, game_id: string): Promise<NamespaceRow[]> {
  return await queries
    .select()
    .from(namespaces)
    .where(eq(namespaces.game_id, game_id))
    .orderBy(asc(namespaces.display_name), asc(namespaces.namespace_id))
    .limit(NAMESPACES_MAX);
}

/** Returns the namespaces that are on one of the versions. */
export async function selectOnVersions(queries: Queries, version_ids: string[]): Promise<NamespaceRow[]> {
  return await queries
    .select()
    .from(namespaces)
    .where(sql`${namespaces.version_id} = any(${sql.param(version_ids)}::uuid[])`)
    .orderBy(asc(namespaces.namespace_id))
    .limit(ALL_NAMESPACES_MAX);
}

/** Moves a namespace to a version. Returns false if the game has no such namespace. */
export async function updateVersion(tx: Tx, scope: NamespaceScope, version_id: string, clock: Clock): Promise<boolean> {
  const { game_id, namespace_id } = scope;
  await touch(tx, [topics.game(game_id), topics.namespace(namespace_id)]);
  const rows = await tx
    .update(namespaces)
    .set({ version_id })
    .where(and(eq(namespaces.game_id, game_id), eq(namespaces.namespace_id, namespace_id)))
    .returning();
  const [row] = rows;
  // Reads the clock after waiting for concurrent moves, so that the history is in order.
  if (row) await insertDeployment(tx, row, clock.now());
  return rows.length > 0;
}

/** Returns the versions of a namespace, latest first; only those of deployments before a moment if one is given. */
export async function selectDeployments(
  queries: Queries,
  namespace_id: string,
  { before, limit }: { before?: Date | undefined; limit: number },
): Promise<NamespaceVersionRow[]> {
  const is_before = before && lt(namespaceVersions.deploy_ts, before);
  return await queries
    .select()
    .from(namespaceVersions)
    .where(and(eq(namespaceVersions.namespace_id, namespace_id), is_before))
    .orderBy(desc(namespaceVersions.deploy_ts), desc(namespaceVersions.deploy_id))
    .limit(limit);
}

/**
 * Inserts a deployment that is later than all others of its namespace, so that its time tells where a page ends. The caller
 * has locked the namespace.
 */
async function insertDeployment(
  tx: Tx,
  { namespace_id, version_id }: Pick<NamespaceRow, 'namespace_id' | 'version_id'>,
  now: Date,
): Promise<void> {
  const after_last = sql`(
    select max(deploy_ts) + interval '1 millisecond' from ${namespaceVersions} where namespace_id = ${namespace_id})`;
  await tx.insert(namespaceVersions).values({
    deploy_id: Bun.randomUUIDv7(),
    namespace_id,
    version_id,
    deploy_ts: sql`greatest(${timestamptz(now)}, ${after_last})`,
  });
}
