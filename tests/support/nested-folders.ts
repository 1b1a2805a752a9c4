import { closeSync, constants, mkdirSync, openSync, writeFileSync } from 'node:fs';

/** Creates folders inside of each other, and a file in the innermost. Their path may be longer than a program can name. */
export function nestFolders(folder: string, { name, count }: { name: string; count: number }, file: Uint8Array): void {
  let at = openSync(folder, constants.O_DIRECTORY);
  for (let level = 0; level < count; level += 1) {
    mkdirSync(`/proc/self/fd/${at}/${name}`);
    const below = openSync(`/proc/self/fd/${at}/${name}`, constants.O_DIRECTORY);
    closeSync(at);
    at = below;
  }
  writeFileSync(`/proc/self/fd/${at}/file`, file);
  closeSync(at);
}
