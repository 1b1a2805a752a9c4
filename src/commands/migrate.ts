import { takeConfig } from '../config.ts';
import { openDataDirectory } from '../platform/data-directory.ts';
import { openConfiguredDatabase } from '../platform/database/connect.ts';
import { migrateDatabase } from '../platform/database/migrate.ts';
import { createLog } from '../platform/events.ts';
import { VERSION } from '../platform/version.ts';
import type { CommandOutput } from './command-output.ts';
import { runDatabaseCommand, sayThatItWaits } from './database-command.ts';

/**
 * Migrates the database without serving, for example before several processes start. Fails if the database is not
 * available.
 */
export async function migrate(_: string[], output: CommandOutput): Promise<number> {
  const config = takeConfig();
  return await runDatabaseCommand({ not_done: 'The database was not migrated', output }, async (signal) => {
    using data = openDataDirectory(config.data_directory);
    await using database = await openConfiguredDatabase(config, data, createLog(config.log), { signal });
    await migrateDatabase(database, { signal, onWait: sayThatItWaits });
    output.show({ version: VERSION }, 'The database is up to date with this release.');
  });
}
