import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { findAsset } from '../assets.ts';
import { StartError } from '../errors.ts';
import { type Database, LOCKS } from './database.ts';
import { isForbidden } from './failures.ts';

/**
 * Brings the database to the form that this release works with. Several processes may call it at once: the first does
 * the work under a lock (Drizzle's migrator takes none), the others wait and find it done. Throws StartError when the
 * database's user may not do it.
 */
export async function migrateDatabase(database: Database): Promise<void> {
  try {
    await database.exclusively(LOCKS.migration, (connection) =>
      migrate(connection, {
        migrationsFolder: findAsset('drizzle'),
        migrationsSchema: 'public',
        migrationsTable: 'migrations',
      }),
    );
  } catch (cause) {
    if (!isForbidden(cause)) throw cause;
    const what =
      'The user of DATABASE_URL may not make tables in its database: let it own the database, or grant it all.';
    throw new StartError(what, { cause });
  }
}
