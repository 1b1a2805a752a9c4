import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isErrno } from '../processes.ts';
import { checkedKey, exactly, type Objects } from './objects.ts';

/** How the names of files end that are not yet objects. */
const UNFINISHED = '.unfinished';

/** Objects as files. What is acknowledged is on the disk (fsync), and what is seen is whole (rename). */
export function createDiskObjects(directory: string): Objects {
  const fileOf = (key: string) => join(directory, checkedKey(key));

  return {
    object_bytes_max: Number.MAX_SAFE_INTEGER,
    async put(key, content, length_bytes) {
      const file = fileOf(key);
      const unfinished = `${file}.${crypto.randomUUID()}${UNFINISHED}`;
      const made = await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      if (made !== undefined) await syncDirectory(dirname(made));
      const handle = await open(unfinished, 'wx', 0o600);
      try {
        for await (const chunk of exactly(content, length_bytes)) await handle.writeFile(chunk);
        await handle.sync();
        await handle.close();
        await rename(unfinished, file);
        await syncDirectory(dirname(file));
      } catch (error) {
        await handle.close().catch(() => {});
        await rm(unfinished, { force: true });
        throw error;
      }
    },
    async list(folder) {
      const sizes = new Map<string, number>();
      for (const name of await namesIn(fileOf(folder))) {
        const key = `${folder}/${name}`;
        const size = await ifThere(stat(fileOf(key)).then((found) => found.size));
        if (size !== undefined) sizes.set(key, size);
      }
      return sizes;
    },
    async read(key, range) {
      const path = fileOf(key);
      await stat(path);
      const file = Bun.file(path);
      return (range ? file.slice(range.start, range.end + 1) : file).stream();
    },
    async remove(keys) {
      for (const file of keys.map(fileOf)) await rm(file, { force: true });
    },
    async removeFolder(folder) {
      await rm(fileOf(folder), { recursive: true, force: true });
    },
  };
}

/** The names of the whole files in a directory. */
async function namesIn(path: string): Promise<string[]> {
  const entries = (await ifThere(readdir(path, { withFileTypes: true }))) ?? [];
  return entries.flatMap((entry) => (entry.isFile() && !entry.name.endsWith(UNFINISHED) ? [entry.name] : []));
}

/** The same; undefined when there is no such file or directory, or not any more. */
async function ifThere<Found>(found: Promise<Found>): Promise<Found | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  await directory.sync();
  await directory.close();
}
