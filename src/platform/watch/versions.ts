import { type SQL, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../database/database.ts';
import { createStatement } from '../database/statement.ts';
import { epochs, topics } from './tables.ts';

/** The channel on which PostgreSQL tells of raised versions; the payload is `<version> <topic>`. */
export const CHANGES_CHANNEL = 'muster_changes';

/**
 * Raises the versions of topics and tells of it when the transaction commits; nobody hears of one that is rolled back.
 * Gives the new versions. The rows stay locked until then: a transaction that touches must do so before it locks rows of
 * its own, so that two of them never wait for each other.
 */
export async function touch(tx: Tx, names: string[]): Promise<Map<string, number>> {
  const raised = await tx.execute<{ topic: string; version: string }>(sql`
    with ${raise(names)} select topic, version from told`);
  return new Map(raised.map(({ topic, version }) => [topic, Number(version)]));
}

/** Locks the rows of topics until the transaction ends, as {@link touch} does, and tells nobody. */
export async function hold(tx: Tx, names: string[]): Promise<void> {
  await tx.execute(sql`
    insert into ${topics} (topic, version)
    select name, 0 from unnest(${sql.param(inOrder(names))}::text[]) as name
    on conflict (topic) do update set version = ${topics}.version`);
}

/**
 * The common table expression `told (topic, version)`, for statements that touch and do their work in one go: they raise
 * and tell before they read from it, and do neither when they never read from it.
 */
export function raise(names: string[]): SQL {
  return raiseAll(sql`${sql.param(inOrder(names))}`);
}

/** The same for an array of names that are {@link inOrder}. */
export function raiseAll(names: SQL): SQL {
  return raiseSelected(sql`select name from unnest(${names}::text[]) as name`, 'told');
}

/** Each once and in one order, so that two transactions with the same topics do not wait for each other. */
export function inOrder(names: string[]): string[] {
  return [...new Set(names)].sort();
}

/** The same for the topics that a query selects, each once and in one order, under a name of its own. */
export function raiseSelected(names: SQL, told: string): SQL {
  const raised = sql.identifier(`raised_${told}`);
  return sql`${raised} as (
      insert into ${topics} (topic, version)
      select name, 1 from (${names}) as named (name)
      on conflict (topic) do update set version = ${topics}.version + 1
      returning topic, version
    ),
    ${sql.identifier(told)} as (
      select topic, version, pg_notify(${CHANGES_CHANNEL}, version || ' ' || topic) from ${raised}
    )`;
}

const VERSIONS = createStatement<{ names: string[] }>(
  (value) => sql`select topic, version from ${topics} where topic = any(${value('names')}::text[])`,
);

/** Versions by topic; what has never been touched is 0. */
export async function readVersions(queries: Queries, names: string[]): Promise<Map<string, number>> {
  const rows = await queries.execute<{ topic: string; version: string }>(VERSIONS({ names }));
  const versions = new Map(names.map((name) => [name, 0]));
  for (const { topic, version } of rows) versions.set(topic, Number(version));
  return versions;
}

/** The name of this database's life, made at the first call. */
export async function readEpoch(queries: Queries): Promise<string> {
  const fresh = crypto.randomUUID().slice(0, 8);
  const [row] = await queries
    .insert(epochs)
    .values({ epoch: fresh })
    .onConflictDoUpdate({ target: epochs.is_only, set: { is_only: true } })
    .returning();
  return row?.epoch ?? fresh;
}
