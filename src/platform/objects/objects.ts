import { createReadStream } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { assert, ServiceError } from '../errors.ts';
import { isErrno } from '../processes.ts';

/** Some bytes of an object, from the first to the last, both included. */
export interface ByteRange {
  start: number;
  end: number;
}

/** Where uploaded files lie. Keys are ours (ids and numbers with slashes), never a user's text. */
export interface Objects {
  /**
   * Stores exactly `length_bytes` bytes under a key, replacing what was there, or nothing at all. Throws
   * UPLOAD_LENGTH_MISMATCH when fewer or more come.
   */
  put(key: string, content: AsyncIterable<Uint8Array>, length_bytes: number): Promise<void>;
  /** The size in bytes; undefined when there is no such object. */
  size(key: string): Promise<number | undefined>;
  /** The bytes, or those of a range. */
  read(key: string, range?: ByteRange): ReadableStream<Uint8Array>;
  /** Makes one object of several, which are gone then; of one, a rename. Repeating it is harmless. */
  join(parts: string[], key: string): Promise<void>;
  /** Removes the objects under a prefix. */
  remove(prefix: string): Promise<void>;
}

const KEY = /^[a-z0-9][a-z0-9.-]*(\/[a-z0-9][a-z0-9.-]*)*$/;

/** Objects as files. What is acknowledged is on the disk (fsync), and what is seen is whole (rename). */
export function createDiskObjects(directory: string): Objects {
  function fileOf(key: string): string {
    assert(KEY.test(key), 'the key of an object leads nowhere else');
    return join(directory, key);
  }

  async function write(
    key: string,
    fill: (append: (chunk: Uint8Array) => Promise<void>) => Promise<void>,
  ): Promise<void> {
    const file = fileOf(key);
    const unfinished = `${file}.${crypto.randomUUID()}.unfinished`;
    const made = await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    if (made !== undefined) await syncDirectory(dirname(made));
    const handle = await open(unfinished, 'wx', 0o600);
    try {
      await fill(async (chunk) => {
        await handle.writeFile(chunk);
      });
      await handle.sync();
      await handle.close();
      await rename(unfinished, file);
      await syncDirectory(dirname(file));
    } catch (error) {
      await handle.close().catch(() => {});
      await rm(unfinished, { force: true });
      throw error;
    }
  }

  async function size(key: string): Promise<number | undefined> {
    try {
      return (await stat(fileOf(key))).size;
    } catch (error) {
      if (isErrno(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  return {
    size,
    put: (key, content, length_bytes) =>
      write(key, async (append) => {
        let received = 0;
        for await (const chunk of content) {
          received += chunk.length;
          if (received > length_bytes) break;
          await append(chunk);
        }
        if (received !== length_bytes)
          throw new ServiceError('UPLOAD_LENGTH_MISMATCH', { expected_bytes: length_bytes });
      }),
    read(key, range) {
      const file = Bun.file(fileOf(key));
      return (range ? file.slice(range.start, range.end + 1) : file).stream();
    },
    async join(parts, key) {
      const [only, ...others] = parts;
      try {
        if (only !== undefined && others.length === 0) {
          await rename(fileOf(only), fileOf(key));
          await syncDirectory(dirname(fileOf(key)));
        } else {
          await write(key, async (append) => {
            for (const part of parts) for await (const chunk of createReadStream(fileOf(part))) await append(chunk);
          });
        }
      } catch (error) {
        // A part that is not there any more: it has been joined before.
        if (!isErrno(error, 'ENOENT') || (await size(key)) === undefined) throw error;
      }
      await Promise.all(parts.map((part) => rm(fileOf(part), { force: true })));
    },
    async remove(prefix) {
      await rm(fileOf(prefix), { recursive: true, force: true });
    },
  };
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  await directory.sync();
  await directory.close();
}
