import { existsSync } from 'node:fs';
import { join } from 'node:path';
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
    const { data_directory, database_url } = config;
    const is_new = database_url === undefined && !existsSync(join(data_directory, 'postgres/cluster'));
    using data = openDataDirectory(config.data_directory);
    await using database = await openConfiguredDatabase(config, data, createLog(config.log), { signal });
    await migrateDatabase(database, { signal, onWait: sayThatItWaits });
    const which = is_new ? `The database is new, because ${data_directory} had none (MUSTER_DATA). It` : 'The database';
    output.show({ version: VERSION }, `${which} is up to date with this release.`);
  });
}
