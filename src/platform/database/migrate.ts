import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { sql } from 'drizzle-orm';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { findAsset } from '../assets.ts';
import { StartError } from '../errors.ts';
import { VERSION } from '../version.ts';
import { type Database, LOCKS, type LockWait } from './database.ts';
import { isForbidden } from './failures.ts';
import type { AppliedMigration, Contents, TableShape } from './table-copies.ts';

const TABLE_WAIT_MAX_MS = 5_000;

/** The migrations of a release. */
interface Migrations {
  /** The release's version. */
  version: string;
  /** The folder of its migrations. */
  folder: string;
}

type MigrateOptions = Partial<Migrations> & LockWait;

/**
 * Migrates the database to this release. Several processes may call it at the same time: the first one migrates under a
 * lock (Drizzle's migrator takes none), and the others wait. Throws StartError if the user lacks the privileges, or a newer
 * release has migrated the database; the reason of the signal if it is aborted while it waits; a failure that counts as
 * unavailability if a table stays in use.
 */
export async function migrateDatabase(
  database: Database,
  { version = VERSION, folder = findAsset('drizzle'), ...waiting }: MigrateOptions = {},
): Promise<void> {
  const work = async (connection: PostgresJsDatabase) => {
    // A migration that waits for a table, as behind a backup, makes all later statements of the table wait behind it.
    await connection.execute(sql.raw(`set lock_timeout = ${TABLE_WAIT_MAX_MS}`));
    await assertNotNewer(connection, { version, folder });
    const options = { migrationsFolder: folder, migrationsSchema: 'public', migrationsTable: 'migrations' };
    await migrate(connection, options);
    await recordRelease(connection, version);
  };
  try {
    await database.exclusively(LOCKS.migration, work, waiting);
  } catch (cause) {
    if (!isForbidden(cause)) throw cause;
    const what =
      'The user of DATABASE_URL may not create tables in its database: make it the owner, or grant it all privileges.';
    throw new StartError(what, { cause });
  }
}

/**
 * Applies the migrations that a backup's database had, so that its rows fit. Throws StartError if the backup has
 * migrations that this release does not know; the reason of the signal if it is aborted while this waits.
 */
export async function migrateAsFarAs(
  database: Database,
  { version, migrations }: { version: string; migrations: AppliedMigration[] },
  waiting: LockWait,
): Promise<void> {
  const folder = findAsset('drizzle');
  assertKnown({ version, migrations }, folder);
  const last = migrations.at(-1)?.created_at ?? 0;
  const partial = await mkdtemp(join(tmpdir(), 'muster-migrations-'));
  try {
    await copyMigrations({ from: folder, to: partial, last });
    await migrateDatabase(database, { version, folder: partial, ...waiting });
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

/** Throws StartError if a backup has migrations that this release does not know. */
export function assertKnown(
  { version, migrations }: { version: string; migrations: AppliedMigration[] },
  folder: string = findAsset('drizzle'),
): void {
  const known = new Set(readMigrationFiles({ migrationsFolder: folder }).map(({ hash }) => hash));
  const unknown = migrations.find(({ hash }) => !known.has(hash));
  if (unknown) {
    const release = unknown.release ?? version;
    throw new StartError(
      `The backup is of Muster ${release}, and this is Muster ${VERSION}, which does not know its database: restore it with Muster ${release} or a later release.`,
    );
  }
}

/**
 * Separates the tables that migrations created from those of other programs. If a later release has migrated the database,
 * its tables are unknown here: then each table counts as Muster's whose name and columns are spelled as all of Muster's are.
 */
export function findOwnTables({ migrations, tables }: Contents): { own: TableShape[]; foreign: TableShape[] } {
  const known = readMigrationFiles({ migrationsFolder: findAsset('drizzle') });
  const hashes = new Set(known.map(({ hash }) => hash));
  const has_unknown = migrations.some(({ hash }) => !hashes.has(hash));
  const statements = known.flatMap(({ sql: texts }) => texts).join('\n');
  const names = new Set([...statements.matchAll(CREATED_TABLE)].map(([, name]) => name));
  const mayBeOwn = ({ name, columns }: TableShape) => [name, ...columns].every((one) => OWN_NAME.test(one));
  const isOwn = has_unknown ? mayBeOwn : ({ name }: TableShape) => names.has(name);
  return { own: tables.filter(isOwn), foreign: tables.filter((table) => !isOwn(table)) };
}

const CREATED_TABLE = /^CREATE TABLE (?:IF NOT EXISTS )?"(\w+)"/gim;
const OWN_NAME = /^[a-z_][a-z0-9_]*$/;

/** Copies the migrations up to the one of the moment `last` to another folder. */
async function copyMigrations({ from, to, last }: { from: string; to: string; last: number }): Promise<void> {
  const journal: Journal = await Bun.file(join(from, JOURNAL)).json();
  const entries = journal.entries.filter(({ when }) => when <= last);
  await mkdir(dirname(join(to, JOURNAL)));
  await Bun.write(join(to, JOURNAL), JSON.stringify({ ...journal, entries }));
  for (const { tag } of entries) await Bun.write(join(to, `${tag}.sql`), Bun.file(join(from, `${tag}.sql`)));
}

const JOURNAL = 'meta/_journal.json';

interface Journal {
  entries: { when: number; tag: string }[];
}

/** What an upgrade of a database would do. */
interface Upgrade {
  /** The release that migrated the database last; undefined if none has, or one that did not leave its version. */
  release: string | undefined;
  /** How many migrations of this release the database lacks. */
  pending_count: number;
}

/** Says what this release would do to a database. Changes nothing. Throws StartError if a newer one has migrated it. */
export async function readUpgrade(database: Database, waiting?: LockWait): Promise<Upgrade> {
  const folder = findAsset('drizzle');
  const read = async (connection: PostgresJsDatabase) => {
    await assertNotNewer(connection, { version: VERSION, folder });
    const known = readMigrationFiles({ migrationsFolder: folder });
    if (!(await hasReleases(connection))) return { release: undefined, pending_count: known.length };
    const [last] = await connection.execute<{ release: string | null; created_at: string }>(
      sql`select release, created_at from migrations order by created_at desc limit 1`,
    );
    const pending = known.filter(({ folderMillis }) => folderMillis > Number(last?.created_at ?? 0));
    return { release: last?.release ?? undefined, pending_count: pending.length };
  };
  return await database.exclusively(LOCKS.migration, read, waiting);
}

/** Throws if the database has migrations that this release does not know. */
async function assertNotNewer(connection: PostgresJsDatabase, { version, folder }: Migrations): Promise<void> {
  if (!(await hasReleases(connection))) return;
  const last = readMigrationFiles({ migrationsFolder: folder }).at(-1)?.folderMillis ?? 0;
  const [newer] = await connection.execute<{ release: string | null }>(
    sql`select release from migrations where created_at > ${last}::bigint order by created_at desc limit 1`,
  );
  if (!newer) return;
  const { release } = newer;
  throw new StartError(
    release === null
      ? `The database was migrated by a later release of Muster than this Muster ${version}: start that release or a later one, or restore an older backup.`
      : `The database was migrated by Muster ${release}, and this is the older Muster ${version}: start ${release} or a later release, or restore an older backup.`,
  );
}

/** Records this release for each migration that has no release yet. */
async function recordRelease(connection: PostgresJsDatabase, version: string): Promise<void> {
  if (!(await hasReleases(connection))) await connection.execute(sql`alter table migrations add column release text`);
  await connection.execute(sql`update migrations set release = ${version} where release is null`);
}

async function hasReleases(connection: PostgresJsDatabase): Promise<boolean> {
  const rows = await connection.execute(sql`
    select from pg_attribute where attrelid = to_regclass('public.migrations') and attname = 'release'`);
  return rows.length > 0;
}
