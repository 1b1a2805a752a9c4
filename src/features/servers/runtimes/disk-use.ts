import { lstatSync } from 'node:fs';
import { readdir, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createPacer } from '../../../platform/pacing.ts';
import type { DiskUse } from './runtime.ts';

const BLOCK_BYTES = 512;
/** What the kernel adds to the name of an open file that no folder has any more. */
const DELETED = ' (deleted)';

interface Measured {
  folder: string;
  /** Processes that may have deleted files open. */
  pids: readonly number[];
  /** Returns whether a deleted file with this name was in the folder, as the processes see it. */
  isInside(path: string): boolean;
}

/**
 * Measures what a server has on the disk: everything below its folder, and files that it deleted but still has open.
 * Follows no links. Stops early above the limit, so that a server with millions of files takes no longer than one at its
 * limit. Files that disappear meanwhile are left out.
 */
export async function measureDisk({ folder, pids, isInside }: Measured, limit: DiskUse): Promise<DiskUse> {
  const used: DiskUse = { bytes: 0, files: 0 };
  const pace = createPacer();
  const folders = [folder];
  for (let path = folders.pop(); path !== undefined; path = folders.pop()) {
    for (const entry of await readdir(path, { withFileTypes: true }).catch(() => [])) {
      const at = `${path}/${entry.name}`;
      used.bytes += blocksOf(at) * BLOCK_BYTES;
      used.files += 1;
      if (isAbove(used, limit)) return used;
      if (entry.isDirectory()) folders.push(at);
      await pace();
    }
  }
  const counted = new Set<string>();
  for (const pid of pids) {
    const descriptors = `/proc/${pid}/fd`;
    for (const name of await readdir(descriptors).catch(() => [])) {
      const file = join(descriptors, name);
      const link = await readlink(file).catch(() => '');
      if (!link.endsWith(DELETED) || !isInside(link.slice(0, -DELETED.length))) continue;
      const found = await stat(file).catch(() => undefined);
      if (!found || counted.has(`${found.dev}:${found.ino}`)) continue;
      counted.add(`${found.dev}:${found.ino}`);
      used.bytes += found.blocks * BLOCK_BYTES;
      used.files += 1;
    }
  }
  return used;
}

/** Returns the allocated blocks of a file. Synchronous: a thread for each file would take ten times as long. */
function blocksOf(path: string): number {
  try {
    return lstatSync(path).blocks;
  } catch {
    return 0;
  }
}

export function isAbove(used: DiskUse, limit: DiskUse): boolean {
  return used.bytes > limit.bytes || used.files > limit.files;
}
