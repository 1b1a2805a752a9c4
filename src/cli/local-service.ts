import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOKEN_FILE } from '../shared/left-out.ts';
import { environment } from './environment.ts';

/** Returns the administrator's token of this machine's service, if this user may read it. */
export function readLocalToken(): string | undefined {
  for (const directory of environment.data_directories) {
    const file = join(directory, TOKEN_FILE);
    if (!existsSync(file)) continue;
    try {
      return readFileSync(file, 'utf8').trim();
    } catch {
      // Only another user may read it.
    }
  }
  return undefined;
}
