import { readConfig } from '../config.ts';
import { openDataDirectory } from '../platform/data-directory.ts';
import { openConfiguredDatabase } from '../platform/database/connect.ts';
import { migrateDatabase } from '../platform/database/migrate.ts';
import { createLog } from '../platform/events.ts';

/** Brings the database to this release's form without serving: before several processes are started, for one. */
export async function migrate(): Promise<number> {
  const config = readConfig();
  using data = openDataDirectory(config.data_directory);
  await using database = await openConfiguredDatabase(config, data, createLog(config.log));
  await migrateDatabase(database);
  console.log('The database has the form of this release.');
  return 0;
}
