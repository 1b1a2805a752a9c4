import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PackageContent } from './package.ts';

/**
 * Returns what `write` writes to a temporary file of this name. `write` may use the file's directory, which is removed if it
 * fails, and on disposal.
 */
export async function writeContent(name: string, write: (file: string) => Promise<void>): Promise<PackageContent> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-package-'));
  const remove = () => rm(directory, { recursive: true, force: true });
  const file = join(directory, name);
  try {
    await write(file);
  } catch (error) {
    await remove();
    // A failed write, unlike a failed open, does not name its file.
    if (error instanceof Error && 'syscall' in error && !('path' in error)) Object.assign(error, { path: file });
    throw error;
  }
  return { blob: Bun.file(file), [Symbol.asyncDispose]: remove };
}
