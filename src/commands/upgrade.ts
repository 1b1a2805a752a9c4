import { takeConfig } from '../config.ts';
import { readUpgrade } from '../platform/database/migrate.ts';
import { VERSION } from '../platform/version.ts';
import { EXIT } from '../terminal/failure.ts';
import { counted } from '../terminal/terminal.ts';
import type { CommandOutput } from './command-output.ts';
import { runDatabaseCommand, sayThatItWaits } from './database-command.ts';
import { openOwnDatabase } from './service-database.ts';
import { usageOf } from './usages.ts';

/** Says what the first start of this release would do to the database. Changes nothing. */
export async function upgrade(args: string[], output: CommandOutput): Promise<number> {
  if (args.length !== 1 || args[0] !== '--check') return output.fail(usageOf('upgrade') ?? '', EXIT.wrong_use);
  const config = takeConfig();
  return await runDatabaseCommand({ not_done: 'The database was not checked', output }, async (signal) => {
    await using opened = new AsyncDisposableStack();
    const own_database = await openOwnDatabase(config, opened, signal);
    const { release, pending_count } = await readUpgrade(own_database, { signal, onWait: sayThatItWaits });
    const database = release === undefined ? 'the database' : `the database, of Muster ${release},`;
    output.show(
      { version: VERSION, database_version: release, pending_migrations: pending_count },
      pending_count === 0
        ? `Muster ${VERSION} can start: ${database} needs no migration.`
        : `Muster ${VERSION} can start: ${database} gets ${counted(pending_count, 'migration', 'migrations')}. An older release cannot start then: make a backup first.`,
    );
  });
}
