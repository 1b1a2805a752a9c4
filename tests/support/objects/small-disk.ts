import { appendFile, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { makeDataDirectory } from '../service.ts';

const PIECE_BYTES = 1024 ** 2;

/** A file system of its own, which can be filled. */
export interface SmallDisk extends AsyncDisposable {
  directory: string;
  /** Writes until this many bytes are free; 0: until the disk is full. */
  fillUntil(free_bytes: number): Promise<void>;
  /** Removes what `fillUntil` wrote. */
  empty(): Promise<void>;
}

/** Mounts a file system in memory that takes up to `files_max` files; undefined if this process may not mount. */
export async function mountSmallDisk(megabytes: number, files_max?: number): Promise<SmallDisk | undefined> {
  const directory = await makeDataDirectory();
  const options = `size=${megabytes}m,mode=711,nr_inodes=${files_max ?? 0}`;
  const mounting = Bun.spawn(['mount', '-t', 'tmpfs', '-o', options, 'muster-tests', directory], { stderr: 'ignore' });
  if ((await mounting.exited) !== 0) {
    await rm(directory, { recursive: true });
    return undefined;
  }
  const ballast = join(directory, 'ballast');
  return {
    directory,
    async fillUntil(free_bytes) {
      try {
        while ((await freeBytesOf(directory)) > free_bytes) await appendFile(ballast, Buffer.alloc(PIECE_BYTES, 1));
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
      }
    },
    empty: () => rm(ballast, { force: true }),
    async [Symbol.asyncDispose]() {
      await Bun.spawn(['umount', '--lazy', directory]).exited;
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function freeBytesOf(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
