import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * The data directory of a service that runs as root, if MUSTER_DATA is not set and other users cannot enter the current
 * directory.
 */
export const SYSTEM_DATA_DIRECTORY = '/var/lib/muster';

/**
 * Returns the data directory of a service that is started in `directory` without MUSTER_DATA. PostgreSQL and game
 * servers run as other users when we are root, so root's own folders cannot hold the data.
 */
export function defaultDataDirectory(directory: string): string {
  const is_closed = process.getuid?.() === 0 && !canBeEnteredByOthers(directory);
  return is_closed ? SYSTEM_DATA_DIRECTORY : join(directory, 'muster-data');
}

/** Returns whether other users may pass through every directory from the root to this one. */
export function canBeEnteredByOthers(directory: string): boolean {
  const passes = (statSync(directory).mode & 0o001) !== 0;
  return passes && (dirname(directory) === directory || canBeEnteredByOthers(dirname(directory)));
}
