import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { openUnlessInUse } from '../platform/data-directory.ts';
import { connectDatabase, connectRunningEmbedded, openConfiguredDatabase } from '../platform/database/connect.ts';
import type { Database } from '../platform/database/database.ts';
import { StartError } from '../platform/errors.ts';
import { createLog } from '../platform/events.ts';

const POOL = 2;

/**
 * Opens the database of this machine's service, whether the service runs or not. Throws StartError if there is none; the
 * reason of the signal if it is aborted meanwhile.
 */
export async function openOwnDatabase(
  { data_directory, database_url, log }: Config,
  closing: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Database> {
  if (database_url !== undefined) return closing.use(await connectDatabase({ url: database_url }, POOL, signal));
  const directory = join(data_directory, 'postgres');
  if (!existsSync(join(directory, 'cluster'))) {
    throw new StartError(
      `There is no database in ${data_directory}: set MUSTER_DATA or DATABASE_URL as for "muster serve".`,
    );
  }
  const data = openUnlessInUse(data_directory);
  if (!data) return closing.use(await connectRunningEmbedded(directory, POOL, signal));
  closing.use(data);
  const configured = { database_url, database_pool: POOL };
  return closing.use(await openConfiguredDatabase(configured, data, createLog(log), { signal }));
}
