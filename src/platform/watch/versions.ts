import { type SQL, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../database/database.ts';
import { createStatement } from '../database/statement.ts';
import { notify, notifyTogether } from './notifications.ts';
import { epochs, topics } from './tables.ts';

/** Minimum number of topics of a statement for which shared notifications are worth their cost. */
const TOGETHER_MIN = 8;

/**
 * Bumps the versions of topics, and notifies watchers when the transaction commits. Returns the new versions. The rows of
 * the topics stay locked until then, so a transaction must call this before it locks other rows: otherwise two
 * transactions could wait for each other.
 */
export async function touch(tx: Tx, names: string[]): Promise<Map<string, number>> {
  const rows = await tx.execute<{ topic: string; version: string }>(sql`
    with ${bump(names)} select topic, version from bumped`);
  return new Map(rows.map(({ topic, version }) => [topic, Number(version)]));
}

/** Locks the rows of topics until the transaction ends, like `touch`, but does not bump them. */
export async function lockTopics(tx: Tx, names: string[]): Promise<void> {
  await tx.execute(sql`
    insert into ${topics} (topic, version)
    select name, 0 from unnest(${sql.param(inOrder(names))}::text[]) as name
    on conflict (topic) do update set version = ${topics}.version`);
}

/**
 * Returns the common table expression `bumped (topic, version)`, for a statement that bumps topics and does other work. The
 * statement must read all its rows; otherwise watchers are not notified.
 */
export function bump(names: string[]): SQL {
  const distinct = inOrder(names);
  const bumpEach = distinct.length < TOGETHER_MIN ? bumpSelected : bumpMany;
  return bumpEach(sql`select name from unnest(${sql.param(distinct)}::text[]) as name`, 'bumped');
}

/** Sorts names and removes duplicates. All statements lock topics in this order, so that no two wait for each other. */
export function inOrder(names: string[]): string[] {
  return [...new Set(names)].sort();
}

/**
 * Returns a common table expression `(topic, version)` that bumps the topics that a query selects. The query must return
 * each topic once, in order.
 */
export function bumpSelected(names: SQL, expression: string): SQL {
  const versions = sql.identifier(`${expression}_versions`);
  return sql`${versions} as (${bumpVersions(names)}),
    ${sql.identifier(expression)} as (
      select topic, version, ${notify(sql`topic`, sql`version`)} from ${versions}
    )`;
}

/** Like `bumpSelected`, for queries that select many topics, which then share notifications. */
export function bumpMany(names: SQL, expression: string): SQL {
  const versions = sql.identifier(`${expression}_versions`);
  // The count reads every notification, which sends it. The condition itself is always true.
  return sql`${versions} as (${bumpVersions(names)}),
    ${sql.identifier(expression)} as (
      select topic, version from ${versions}
      where (select count(*) from (${notifyTogether(sql`select topic, version from ${versions}`)}) as notified) > 0
    )`;
}

function bumpVersions(names: SQL): SQL {
  return sql`
    insert into ${topics} (topic, version)
    select name, 1 from (${names}) as named (name)
    on conflict (topic) do update set version = ${topics}.version + 1
    returning topic, version`;
}

/**
 * Deletes the rows of topics whose objects are deleted in the same transaction, and notifies watchers. Unlike `touch`, it
 * may be called after the objects are locked, because no other transaction waits for these topics.
 */
export async function deleteTopics(tx: Tx, names: string[]): Promise<void> {
  await tx.execute(sql`
    with deleted as (
      delete from ${topics} where topic = any(${sql.param(names)}::text[]) returning topic
    )
    ${notifyTogether(sql`select topic, 0 from deleted`)}`);
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

/** Returns the epoch of this database. The first call creates it. */
export async function readEpoch(queries: Queries): Promise<string> {
  const fresh = crypto.randomUUID().slice(0, 8);
  const [row] = await queries
    .insert(epochs)
    .values({ epoch: fresh })
    .onConflictDoUpdate({ target: epochs.is_only, set: { is_only: true } })
    .returning();
  return row?.epoch ?? fresh;
}
