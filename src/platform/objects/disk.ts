import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ServiceError } from '../errors.ts';
import { type DiskSpace, UNLIMITED_SPACE } from '../system/disk-space.ts';
import { syncPath } from '../system/durable.ts';
import { hasErrorCode } from '../system/system-errors.ts';
import { checkedKey, checkLength, isKey, MissingObject, type Objects } from './objects.ts';

/** The folder of unfinished files; no key begins with a dot. */
const UNFINISHED = '.unfinished';

/**
 * Stores objects as files. An acknowledged object is on the disk (fsync), and a visible one is complete (rename). Several
 * processes may share the directory.
 */
export function createDiskObjects(directory: string, space: DiskSpace = UNLIMITED_SPACE): Objects {
  const unfinished_folder = join(directory, UNFINISHED);
  const fileOf = (key: string) => join(directory, checkedKey(key));

  return {
    object_bytes_max: Number.MAX_SAFE_INTEGER,
    async put(key, content, length_bytes) {
      await space.assertRoom(length_bytes);
      const file = fileOf(key);
      await makeFolder(dirname(file));
      await mkdir(unfinished_folder, { recursive: true, mode: 0o700 });
      const unfinished = join(unfinished_folder, crypto.randomUUID());
      try {
        await writeSynced(unfinished, checkLength(content, length_bytes), space);
        await rename(unfinished, file).catch(async (error: unknown) => {
          if (!hasErrorCode(error, 'ENOENT')) throw error;
          // The folder was removed meanwhile.
          await makeFolder(dirname(file));
          await rename(unfinished, file);
        });
        await syncPath(dirname(file));
      } catch (error) {
        await rm(unfinished, { force: true });
        throw error;
      }
    },
    async list(folder) {
      const sizes = new Map<string, number>();
      const keys = (await namesIn(fileOf(folder))).map((name) => `${folder}/${name}`);
      for (const key of keys.filter(isKey)) {
        const size = await ifThere(stat(fileOf(key)).then((found) => found.size));
        if (size !== undefined) sizes.set(key, size);
      }
      return sizes;
    },
    async read(key, range) {
      const path = fileOf(key);
      await stat(path).catch((failure: unknown) => {
        const cause = hasErrorCode(failure, 'ENOENT') ? new MissingObject(`${path} does not exist`) : failure;
        throw new ServiceError('OBJECTS_UNAVAILABLE', {}, { cause });
      });
      const file = Bun.file(path);
      return (range ? file.slice(range.start, range.end + 1) : file).stream();
    },
    async remove(keys) {
      for (const file of keys.map(fileOf)) await rm(file, { force: true });
    },
    async removeFolder(folder) {
      await rm(fileOf(folder), { recursive: true, force: true });
    },
    async removeUnfinished(before) {
      for (const name of await namesIn(unfinished_folder)) {
        const path = join(unfinished_folder, name);
        const written = await ifThere(stat(path).then(({ mtime }) => mtime));
        if (written && written < before) await rm(path, { force: true });
      }
    },
  };
}

/** Writes a new file and syncs it to the disk. */
async function writeSynced(path: string, content: AsyncIterable<Uint8Array>, space: DiskSpace): Promise<void> {
  const takeRoom = space.createMeter();
  const handle = await open(path, 'wx', 0o600);
  try {
    for await (const chunk of content) {
      await takeRoom(chunk.length);
      await handle.writeFile(chunk);
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Makes a folder that is on the disk afterwards, if it is missing. */
async function makeFolder(path: string): Promise<void> {
  const made = await mkdir(path, { recursive: true, mode: 0o700 });
  if (made !== undefined) await syncPath(dirname(made));
}

/** Lists the names of the files in a directory; an empty list if there is none. */
async function namesIn(path: string): Promise<string[]> {
  const entries = (await ifThere(readdir(path, { withFileTypes: true }))) ?? [];
  return entries.flatMap((entry) => (entry.isFile() ? [entry.name] : []));
}

/** Returns undefined if the file or directory does not exist. */
async function ifThere<Found>(found: Promise<Found>): Promise<Found | undefined> {
  try {
    return await found;
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
