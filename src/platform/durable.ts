import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';

const AT_ONCE = 16;

/**
 * Syncs a directory and everything below it to the disk, so that a later rename of it survives a power failure. (Without
 * this, the rename may reach the disk before the bytes do.)
 */
export async function syncTree(directory: string): Promise<void> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = entries.map(({ parentPath, name }) => join(parentPath, name)).values();
  // Concurrent syncs share one flush of the disk.
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const path of paths) await syncPath(path);
    }),
  );
  await syncPath(directory);
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
