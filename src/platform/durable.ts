import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';

const AT_ONCE = 16;

/**
 * Has everything below a directory, and the directory itself, written to the disk: what is renamed after that is whole
 * even when the machine loses its power. (A rename may reach the disk before the bytes of what is renamed.)
 */
export async function syncTree(directory: string): Promise<void> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = entries.map(({ parentPath, name }) => join(parentPath, name)).values();
  // Several at once share the disk's one way of writing things down.
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const path of paths) await syncPath(path);
    }),
  );
  await syncPath(directory);
}

/** The same for one file, or for the names in one directory. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
