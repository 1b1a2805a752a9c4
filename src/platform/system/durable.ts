import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';

const AT_ONCE = 16;

/**
 * Syncs a directory and everything below it to the disk, so that a later rename of it survives a power failure. (Without
 * this, the rename may reach the disk before the bytes do.) Opens only files and folders: never a link, nor what it
 * points to.
 */
export async function syncTree(directory: string): Promise<void> {
  const paths = listTree(directory);
  // Concurrent syncs share one flush of the disk.
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for await (const path of paths) await syncPath(path);
    }),
  );
  await syncPath(directory);
}

/** Lists the files and folders below a directory. The recursive `readdir` of Bun would enter folders through links. */
async function* listTree(directory: string): AsyncGenerator<string, void> {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) yield* listTree(path);
    if (entry.isDirectory() || entry.isFile()) yield path;
  }
}

/** Syncs one file, or the names in one directory, to the disk. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
