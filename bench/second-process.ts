import { dirname } from 'node:path';
import type { connectionOf } from '../tests/support/database/embedded.ts';

/** Returns the settings of another process of the service that uses an embedded PostgreSQL. */
export function settingsOn({ path, user, database }: ReturnType<typeof connectionOf>) {
  // The driver takes the directory of the socket from the environment, as libpq does.
  return { DATABASE_URL: `postgres:///${database}`, PGHOST: dirname(path), PGUSER: user };
}
