import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOKEN_FILE } from '../shared/left-out.ts';
import { environment } from './environment.ts';

/** The token of an administrator, and the file of a data directory that has it. */
interface LocalToken {
  token: string;
  file: string;
}

/** Returns the administrator's token of this machine's service, if this user may read it. */
export function readLocalToken(): LocalToken | undefined {
  for (const directory of environment.data_directories) {
    const file = join(directory, TOKEN_FILE);
    if (!existsSync(file)) continue;
    try {
      return { token: readFileSync(file, 'utf8').trim(), file };
    } catch {
      // Only another user may read it.
    }
  }
  return undefined;
}
