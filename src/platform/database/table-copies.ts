import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type postgres from 'postgres';
import { StartError } from '../errors.ts';
import type { Database } from './database.ts';

/** The table of applied migrations. It is not copied, because migrating fills it. */
const MIGRATIONS = 'migrations';

/** A table and its columns, except generated ones. */
export interface TableShape {
  name: string;
  columns: string[];
}

export interface AppliedMigration {
  hash: string;
  created_at: number;
  /** The release that applied it, if it was recorded. */
  release?: string;
}

/** What a database consists of. */
export interface Contents {
  migrations: AppliedMigration[];
  /** All other tables, each after those that it references. */
  tables: TableShape[];
}

/** The database at one moment. */
export interface Snapshot extends Contents {
  /** Yields the rows of a table in PostgreSQL's text format. Each chunk has whole rows. */
  copyOut(table: TableShape): AsyncIterable<Uint8Array>;
  /** Returns the rows of a query. */
  read<Row>(text: string): Promise<Row[]>;
}

/** Copies rows into a table, in PostgreSQL's text format. */
export type CopyIn = (table: TableShape, rows: AsyncIterable<Uint8Array>) => Promise<void>;

/** Runs work that copies the database as it is at one moment, while others change it. */
export async function copyDatabase<Result>(
  database: Database,
  work: (snapshot: Snapshot) => Promise<Result>,
): Promise<Result> {
  return await transactUnlimited(database, 'isolation level repeatable read, read only', async (tx) => {
    const read = async <Row>(text: string) => (await tx.unsafe(text)) as unknown as Row[];
    return await work({
      migrations: await readMigrations(tx),
      tables: await readTables(tx),
      // PostgreSQL sends one message for each row, and the driver passes each on as one chunk.
      copyOut: (table) => readCopy(tx, `copy ${quoteTable(table)} to stdout`),
      read,
    });
  });
}

interface FillOptions {
  /** Statements that run last, in the same transaction. */
  last_statements: string[];
  /** Ends the work before it is committed. */
  signal: AbortSignal;
}

/**
 * Fills the empty tables of a database in one transaction. Throws StartError if a table has rows, or other migrations were
 * applied; the reason of the signal if it is aborted.
 */
export async function fillDatabase(
  database: Database,
  { migrations, tables }: Contents,
  work: (copyIn: CopyIn) => Promise<void>,
  { last_statements, signal }: FillOptions,
): Promise<void> {
  await transactUnlimited(database, 'read write', async (tx) => {
    await assertEmpty(tx, tables);
    const last = (await readMigrations(tx)).at(-1);
    if (last?.hash !== migrations.at(-1)?.hash) throw otherRelease();
    await work(async (table, rows) => {
      const target = await tx.unsafe(`copy ${quoteTable(table)} from stdin`).writable();
      await pipeline(Readable.from(rows), target);
    });
    await recordReleases(tx, migrations);
    await advanceSequences(tx, tables);
    for (const statement of last_statements) await tx.unsafe(statement);
    // Otherwise PostgreSQL plans the first statements for empty tables.
    await tx.unsafe('analyze');
    signal.throwIfAborted();
  });
}

/** Throws StartError if a table to fill has rows, or the database has migrations that the backup's did not have. */
export async function assertFillable(database: Database, { migrations, tables }: Contents): Promise<void> {
  await transactUnlimited(database, 'read only', async (tx) => {
    await assertEmpty(tx, tables);
    const hashes = new Set(migrations.map(({ hash }) => hash));
    const is_other = (await readMigrations(tx)).some(({ hash }) => !hashes.has(hash));
    if (is_other) throw otherRelease();
  });
}

const otherRelease = () =>
  new StartError('The database has the tables of a later release than the backup: use an empty database.');

/** Runs one transaction on a connection of its own, without deadlines. It is not repeated. */
async function transactUnlimited<Result>(
  database: Database,
  options: string,
  work: (tx: postgres.TransactionSql) => Promise<Result>,
): Promise<Result> {
  const client = database.openCopyConnection();
  try {
    const outcome: { result?: Result; failure?: unknown } = {};
    await client
      .begin(options, async (tx) => {
        try {
          outcome.result = await work(tx);
        } catch (cause) {
          outcome.failure = cause;
          // The end of the connection rolls back too, and unlike a rollback does not wait for an unfinished copy.
          client.end({ timeout: 0 }).catch(() => {});
          throw cause;
        }
      })
      .catch((cause: unknown) => {
        throw outcome.failure ?? cause;
      });
    return outcome.result as Result;
  } finally {
    await client.end({ timeout: 0 });
  }
}

async function* readCopy(tx: postgres.TransactionSql, text: string): AsyncGenerator<Uint8Array, void> {
  yield* await tx.unsafe(text).readable();
}

const quoteTable = ({ name, columns }: TableShape) => `${quote(name)} (${columns.map(quote).join(', ')})`;
const quote = (name: string) => `"${name.replaceAll('"', '""')}"`;

async function readMigrations(tx: postgres.TransactionSql): Promise<AppliedMigration[]> {
  const [found] = await tx.unsafe(`select from to_regclass('public.${MIGRATIONS}') as id where id is not null`);
  if (!found) return [];
  const rows = await tx.unsafe<{ hash: string; created_at: string; release: string | null }[]>(
    // Earlier releases had no column for the release.
    `select hash, created_at, to_jsonb(applied) ->> 'release' as release from ${MIGRATIONS} as applied order by created_at`,
  );
  return rows.map(({ hash, created_at, release }) => ({
    hash,
    created_at: Number(created_at),
    ...(release === null ? {} : { release }),
  }));
}

/** Records the releases that first applied the migrations, instead of the one that restores them. */
async function recordReleases(tx: postgres.TransactionSql, migrations: AppliedMigration[]): Promise<void> {
  for (const { hash, release } of migrations) {
    if (release !== undefined) {
      await tx.unsafe(`update ${MIGRATIONS} set release = $1 where hash = $2`, [release, hash]);
    }
  }
}

async function readTables(tx: postgres.TransactionSql): Promise<TableShape[]> {
  return await tx.unsafe<(TableShape & postgres.Row)[]>(`
    with recursive levels (id, depth) as (
      select oid, 0 from pg_class
      where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> '${MIGRATIONS}'
      union
      select conrelid, depth + 1 from levels
      join pg_constraint on contype = 'f' and confrelid = id and conrelid <> confrelid
      where depth < 100
    )
    select relname as name, array(
      select attname::text from pg_attribute
      where attrelid = id and attnum > 0 and not attisdropped and attgenerated = ''
      order by attnum
    ) as columns
    from levels join pg_class on pg_class.oid = id
    group by id, relname order by max(depth), relname`);
}

/** Throws StartError if one of these tables exists and has rows. */
async function assertEmpty(tx: postgres.TransactionSql, tables: TableShape[]): Promise<void> {
  const names = new Set(tables.map(({ name }) => name));
  for (const { name } of await readTables(tx)) {
    if (!names.has(name)) continue;
    const [row] = await tx.unsafe<{ has_rows: boolean }[]>(`select exists (select from ${quote(name)}) as has_rows`);
    if (!row?.has_rows) continue;
    throw new StartError(
      `The database has data already (in the table ${name}), which a restore never overwrites: use an empty one.`,
    );
  }
}

/** Makes identity columns continue after the copied rows. */
async function advanceSequences(tx: postgres.TransactionSql, tables: TableShape[]): Promise<void> {
  const names = tables.map(({ name }) => name);
  const columns = await tx.unsafe<{ table_name: string; column_name: string; sequence: string }[]>(
    `
    select relname as table_name, attname as column_name,
      pg_get_serial_sequence(quote_ident(relname), attname) as sequence
    from pg_class join pg_attribute on attrelid = pg_class.oid
    where relkind = 'r' and relnamespace = 'public'::regnamespace and attidentity <> '' and relname = any($1::text[])`,
    [names],
  );
  for (const { table_name, column_name, sequence } of columns) {
    await tx.unsafe(
      `select setval($1, coalesce((select max(${quote(column_name)}) from ${quote(table_name)}), 0) + 1, false)`,
      [sequence],
    );
  }
}
