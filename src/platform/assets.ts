import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { assert } from './errors.ts';

/**
 * Returns the path of a file or folder of the repository. The executable includes those that its build names (--asset):
 * folders under their path, single files under their name alone.
 */
export function findAsset(path: string): string {
  const candidates = Bun.isStandaloneExecutable
    ? [join(import.meta.dir, path), join(import.meta.dir, basename(path))]
    : [join(import.meta.dir, '../..', path)];
  const found = candidates.find((candidate) => existsSync(candidate));
  assert(found, `${path} is included in the executable`);
  return found;
}
