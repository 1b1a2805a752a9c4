import { takeConfig } from '../config.ts';
import { openDataDirectory } from '../platform/data-directory.ts';
import { asStartError, openConfiguredDatabase } from '../platform/database/connect.ts';
import { migrateDatabase } from '../platform/database/migrate.ts';
import { createLog } from '../platform/events.ts';
import { VERSION } from '../platform/version.ts';
import type { CommandOutput } from './command-output.ts';

/**
 * Migrates the database without serving, for example before several processes start. Fails if the database is not
 * available.
 */
export async function migrate(_: string[], output: CommandOutput): Promise<number> {
  const config = takeConfig();
  using data = openDataDirectory(config.data_directory);
  try {
    await using database = await openConfiguredDatabase(config, data, createLog(config.log));
    await migrateDatabase(database);
  } catch (cause) {
    throw asStartError(cause);
  }
  output.show({ version: VERSION }, 'The database is up to date with this release.');
  return 0;
}
