import { createWriteStream } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createBrotliCompress, createGzip, createZstdCompress } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import type { Events } from '../../platform/events.ts';
import { type DiskSpace, isShortOfSpace } from '../../platform/system/disk-space.ts';
import type { Encoding } from './rules.ts';

/** Of 11 levels, the one that is about as fast as gzip. Its files are smaller. */
const BROTLI_QUALITY = 4;
const FILES_MAX = 10_000;
/** A request waits for the compression of files up to this size; larger ones are sent uncompressed meanwhile. */
const WAITED_FOR_BYTES_MAX = 4 * 1024 ** 2;

/** Marks a file to send uncompressed: compression does not make it smaller, or the result is larger than the cache. */
const NOT_WORTH_IT = 'not worth it';

/** A file of a complete upload, which never changes. */
export interface Original {
  upload_id: string;
  /** Files with the same content, also of other uploads, share a compressed file. */
  content_id: string;
  content_length: number;
  read(): Promise<ReadableStream<Uint8Array>>;
}

/** A compressed file on disk. */
export interface CompressedFile {
  path: string;
  content_length: number;
}

interface CompressedFilesOptions {
  /** A directory for these files only; opening empties it. */
  directory: string;
  /** Bytes of all files together; the least recently used are removed first. */
  bytes_max: number;
  /** Maximum number of concurrent compressions; each takes a thread and about 13 MB. */
  at_once: number;
  /** The disk of the directory, whose reserve these files leave alone. */
  space: DiskSpace;
  events: Events;
}

export interface CompressedFiles extends AsyncDisposable {
  /** Returns a file in an encoding; undefined if it must be sent uncompressed for now or for good. */
  find(original: Original, encoding: Encoding): Promise<CompressedFile | undefined>;
}

/** Opens the cache of compressed files of sites. Each is compressed on its first request and kept on disk. */
export async function openCompressedFiles(options: CompressedFilesOptions): Promise<CompressedFiles> {
  const { directory, bytes_max, at_once, space, events } = options;
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const stopping = new AbortController();
  const working = new Map<string, Promise<void>>();
  const known = new LRUCache<string, CompressedFile | typeof NOT_WORTH_IT>({
    max: FILES_MAX,
    maxSize: bytes_max,
    sizeCalculation: (file) => (file === NOT_WORTH_IT ? 1 : file.content_length),
    // A file that cannot be removed is removed by the next start.
    dispose: (file) => void (file !== NOT_WORTH_IT && rm(file.path, { force: true }).catch(() => {})),
  });

  async function make(name: string, original: Original, encoding: Encoding): Promise<void> {
    // Uses a new name each time, because the previous file may still be being removed.
    const path = join(directory, `${name}.${crypto.randomUUID()}`);
    try {
      // As much as the compressed file may take, so that a compression that begins also ends.
      await space.assertRoom(original.content_length);
      const takeRoom = space.createMeter();
      async function* measure(chunks: AsyncIterable<Uint8Array>) {
        for await (const chunk of chunks) {
          await takeRoom(chunk.length);
          yield chunk;
        }
      }
      const content = await original.read();
      const output = createWriteStream(path, { mode: 0o600 });
      await pipeline(content, createCompressor(encoding), measure, output, { signal: stopping.signal });
      const content_length = (await stat(path)).size;
      const is_worth_it = content_length < original.content_length && content_length <= bytes_max;
      known.set(name, is_worth_it ? { path, content_length } : NOT_WORTH_IT);
      if (!is_worth_it) await rm(path, { force: true });
    } catch (cause) {
      // A file that cannot be removed is removed by the next start.
      await rm(path, { force: true }).catch(() => {});
      // The event `disk_space_low` reports a full disk, once and not for each request.
      if (stopping.signal.aborted || isShortOfSpace(cause)) return;
      events.emit({ event: 'file_not_compressed', upload_id: original.upload_id, cause });
    } finally {
      working.delete(name);
    }
  }

  return {
    async find(original, encoding) {
      const name = `${original.content_id}.${encoding}`;
      if (!known.has(name) && !working.has(name) && working.size < at_once && !stopping.signal.aborted) {
        working.set(name, make(name, original, encoding));
      }
      if (original.content_length <= WAITED_FOR_BYTES_MAX) await working.get(name);
      const found = known.get(name);
      if (!found || found === NOT_WORTH_IT) return undefined;
      if (await Bun.file(found.path).exists()) return found;
      // Another program removed the file, so the next request compresses it again.
      known.delete(name);
      return undefined;
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all(working.values());
    },
  };
}

function createCompressor(encoding: Encoding): Transform {
  switch (encoding) {
    case 'zstd':
      return createZstdCompress();
    case 'br':
      return createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } });
    case 'gzip':
      return createGzip();
  }
}
