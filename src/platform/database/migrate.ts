import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { findAsset } from '../assets.ts';
import { type Database, LOCKS } from './database.ts';

/**
 * Brings the database to the form that this release works with. Several processes may call it at once: the first does
 * the work under a lock (Drizzle's migrator takes none), the others wait and find it done.
 */
export async function migrateDatabase(database: Database): Promise<void> {
  await database.exclusively(LOCKS.migration, (connection) =>
    migrate(connection, {
      migrationsFolder: findAsset('drizzle'),
      migrationsSchema: 'public',
      migrationsTable: 'migrations',
    }),
  );
}
