import { type SQL, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../database/database.ts';
import { createStatement } from '../database/statement.ts';
import { epochs, topics } from './tables.ts';

/** The channel on which PostgreSQL announces bumped versions; the payload is `<version> <topic>`. */
export const CHANGES_CHANNEL = 'muster_changes';

/**
 * Bumps the versions of topics and notifies of them when the transaction commits; a rollback notifies of nothing. Returns
 * the new versions. The rows stay locked until then: a transaction that touches must do so before it locks rows of its
 * own, so that two of them never wait for each other.
 */
export async function touch(tx: Tx, names: string[]): Promise<Map<string, number>> {
  const rows = await tx.execute<{ topic: string; version: string }>(sql`
    with ${bump(names)} select topic, version from bumped`);
  return new Map(rows.map(({ topic, version }) => [topic, Number(version)]));
}

/** Locks the rows of topics until the transaction ends, as {@link touch} does, without bumping them. */
export async function lockTopics(tx: Tx, names: string[]): Promise<void> {
  await tx.execute(sql`
    insert into ${topics} (topic, version)
    select name, 0 from unnest(${sql.param(inOrder(names))}::text[]) as name
    on conflict (topic) do update set version = ${topics}.version`);
}

/**
 * Returns the common table expression `bumped (topic, version)`, for statements that touch and do their work in one go.
 * The versions are bumped before the statement reads from it, and not at all if the statement never does.
 */
export function bump(names: string[]): SQL {
  return bumpAll(sql`${sql.param(inOrder(names))}`);
}

/** Returns the expression of {@link bump} for an array in SQL whose names are {@link inOrder}. */
export function bumpAll(names: SQL): SQL {
  return bumpSelected(sql`select name from unnest(${names}::text[]) as name`, 'bumped');
}

/** Sorts names and removes duplicates, so that two transactions with the same topics do not wait for each other. */
export function inOrder(names: string[]): string[] {
  return [...new Set(names)].sort();
}

/**
 * Returns a common table expression `(topic, version)` that bumps the topics which a query selects. The query must give
 * each topic once, in order.
 */
export function bumpSelected(names: SQL, expression: string): SQL {
  const new_versions = sql.identifier(`${expression}_versions`);
  return sql`${new_versions} as (
      insert into ${topics} (topic, version)
      select name, 1 from (${names}) as named (name)
      on conflict (topic) do update set version = ${topics}.version + 1
      returning topic, version
    ),
    ${sql.identifier(expression)} as (
      select topic, version, pg_notify(${CHANGES_CHANNEL}, version || ' ' || topic) from ${new_versions}
    )`;
}

/**
 * Deletes the rows of topics whose things are deleted in the same transaction, and notifies watchers, who then find nothing
 * there. Unlike {@link touch} it may come after the things are locked: no one else waits for these topics.
 */
export async function deleteTopics(tx: Tx, names: string[]): Promise<void> {
  await tx.execute(sql`
    with forgotten as (
      delete from ${topics} where topic = any(${sql.param(names)}::text[]) returning topic
    )
    select pg_notify(${CHANGES_CHANNEL}, '0 ' || topic) from forgotten`);
}

const VERSIONS = createStatement<{ names: string[] }>(
  (value) => sql`select topic, version from ${topics} where topic = any(${value('names')}::text[])`,
);

/** Reads versions by topic; a topic that was never touched has version 0. */
export async function readVersions(queries: Queries, names: string[]): Promise<Map<string, number>> {
  const rows = await queries.execute<{ topic: string; version: string }>(VERSIONS({ names }));
  const versions = new Map(names.map((name) => [name, 0]));
  for (const { topic, version } of rows) versions.set(topic, Number(version));
  return versions;
}

/** Returns the name of this database's life. The first call creates it. */
export async function readEpoch(queries: Queries): Promise<string> {
  const fresh = crypto.randomUUID().slice(0, 8);
  const [row] = await queries
    .insert(epochs)
    .values({ epoch: fresh })
    .onConflictDoUpdate({ target: epochs.is_only, set: { is_only: true } })
    .returning();
  return row?.epoch ?? fresh;
}
