import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOKEN_FILE } from '../shared/left-out.ts';
import { environment } from './environment.ts';

/** The token of an administrator, and the file of a data directory that has it. */
interface LocalToken {
  token: string;
  file: string;
}

/**
 * Returns the administrator's tokens in the data directories of this machine that this user may read. Those of services that
 * no longer run may be among them.
 */
export function readLocalTokens(): LocalToken[] {
  return environment.data_directories.flatMap((directory) => {
    const file = join(directory, TOKEN_FILE);
    if (!existsSync(file)) return [];
    try {
      return [{ token: readFileSync(file, 'utf8').trim(), file }];
    } catch {
      // Only another user may read it.
      return [];
    }
  });
}
