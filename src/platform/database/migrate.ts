import { sql } from 'drizzle-orm';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { findAsset } from '../assets.ts';
import { StartError } from '../errors.ts';
import { VERSION } from '../version.ts';
import { type Database, LOCKS } from './database.ts';
import { isForbidden } from './failures.ts';

/** The migrations of a release. */
interface Migrations {
  /** The release's version. */
  version: string;
  /** The folder of its migrations. */
  folder: string;
}

/**
 * Migrates the database to this release. Several processes may call it at the same time: the first one migrates under a
 * lock (Drizzle's migrator takes none), and the others wait. Throws StartError if the user lacks the privileges, or a newer
 * release has migrated the database.
 */
export async function migrateDatabase(
  database: Database,
  { version, folder }: Migrations = { version: VERSION, folder: findAsset('drizzle') },
): Promise<void> {
  try {
    await database.exclusively(LOCKS.migration, async (connection) => {
      await assertNotNewer(connection, { version, folder });
      const options = { migrationsFolder: folder, migrationsSchema: 'public', migrationsTable: 'migrations' };
      await migrate(connection, options);
      await recordRelease(connection, version);
    });
  } catch (cause) {
    if (!isForbidden(cause)) throw cause;
    const what =
      'The user of DATABASE_URL may not create tables in its database: make it the owner, or grant it all privileges.';
    throw new StartError(what, { cause });
  }
}

/** Throws if the database has migrations that this release does not know. */
async function assertNotNewer(connection: PostgresJsDatabase, { version, folder }: Migrations): Promise<void> {
  if (!(await hasReleases(connection))) return;
  const last = readMigrationFiles({ migrationsFolder: folder }).at(-1)?.folderMillis ?? 0;
  const [newer] = await connection.execute<{ release: string | null }>(
    sql`select release from migrations where created_at > ${last}::bigint order by created_at desc limit 1`,
  );
  if (!newer) return;
  const release = newer.release ?? 'of a later release';
  throw new StartError(
    `The database was migrated by Muster ${release}, and this is the older Muster ${version}: start ${release} or a later release, or restore an older backup.`,
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
