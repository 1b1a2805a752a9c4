import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { assert } from './errors.ts';

/**
 * A file or folder of the repository by its path there. The executable carries those that its build names (--asset):
 * folders under their path, single files under their name alone.
 */
export function findAsset(path: string): string {
  const places = Bun.isStandaloneExecutable
    ? [join(import.meta.dir, path), join(import.meta.dir, basename(path))]
    : [join(import.meta.dir, '../..', path)];
  const found = places.find((place) => existsSync(place));
  assert(found, `${path} is carried along`);
  return found;
}
