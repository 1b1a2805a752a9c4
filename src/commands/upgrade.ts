import { readConfig } from '../config.ts';
import { readUpgrade } from '../platform/database/migrate.ts';
import { VERSION } from '../platform/version.ts';
import { openOwnDatabase } from './own-database.ts';
import { runStoppable } from './stoppable.ts';

const WRONG_USE_EXIT_CODE = 2;
const USAGE = `To upgrade, stop "muster serve", and start the new executable with the same data.
Before that, "muster upgrade --check" of the new executable says whether it can take them over.`;

/** Says what the first start of this release would do to the database. Changes nothing. */
export async function upgrade(args: string[]): Promise<number> {
  if (args.length !== 1 || args[0] !== '--check') {
    console.error(USAGE);
    return args[0] === '--help' || args[0] === '-h' ? 0 : WRONG_USE_EXIT_CODE;
  }
  const config = readConfig();
  return await runStoppable('The database was not checked', async () => {
    await using opened = new AsyncDisposableStack();
    const { release, pending_count } = await readUpgrade(await openOwnDatabase(config, opened));
    console.log(
      pending_count === 0
        ? `Muster ${VERSION} can start: the database, of ${release}, needs no migration.`
        : `Muster ${VERSION} can start: it will apply ${pending_count} migrations to the database, of ${release}. An older release cannot start then: make a backup first.`,
    );
  });
}
