import { createReadStream } from 'node:fs';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createZstdDecompress } from 'node:zlib';
import { extract } from 'tar-stream';
import { assert, StartError } from '../errors.ts';
import { systemCodeOf } from '../system/system-errors.ts';
import { END_ENTRY, EntryDigest } from './archive-end.ts';

const END_BYTES_MAX = 1_024;

export interface ArchiveEntry {
  name: string;
  size: number;
  content: AsyncIterable<Uint8Array>;
}

interface ReadOptions {
  signal: AbortSignal;
  /** Called with the number of bytes that were just read from the file. */
  onRead?: (bytes: number) => void;
}

/**
 * Reads an archive, and calls `take` for each entry. If `take` returns "stop", reads no further. Otherwise throws StartError
 * unless the archive is complete and its digest is right.
 */
export async function readArchive(
  path: string,
  { signal, onRead = () => {} }: ReadOptions,
  take: (entry: ArchiveEntry) => Promise<'stop' | undefined>,
): Promise<void> {
  const tar = extract();
  const counter = new Transform({
    transform(chunk: Uint8Array, _encoding, next) {
      onRead(chunk.length);
      next(null, chunk);
    },
  });
  let failure: unknown;
  const reading = pipeline([createReadStream(path), counter, createZstdDecompress(), tar], { signal });
  const finished_reading = reading.catch((cause: unknown) => {
    failure = cause;
    tar.destroy();
  });
  try {
    await readEntries(tar, take);
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    if (!(cause instanceof DamageError)) throw cause;
    // If the file cannot be read, that is the cause of the damage.
    tar.destroy();
    await finished_reading;
    throwIfUnreadable(path, failure);
    throw new StartError(`${path} is not a backup, or is damaged: ${cause.message}. Name another copy.`, {
      cause: failure ?? cause,
    });
  } finally {
    tar.destroy();
    await finished_reading;
  }
}

/** Throws StartError if a failure is one of the file. */
export function throwIfUnreadable(path: string, failure: unknown): void {
  const code = systemCodeOf(failure);
  if (code === undefined) return;
  throw new StartError(`${path} cannot be read (${code}): check that it exists and this user may read it.`, {
    cause: failure,
  });
}

async function readEntries(
  tar: ReturnType<typeof extract>,
  take: (entry: ArchiveEntry) => Promise<'stop' | undefined>,
): Promise<void> {
  const digest = new EntryDigest();
  const entries = tar[Symbol.asyncIterator]();
  for (;;) {
    const { value: entry, done } = await orDamage(entries.next());
    if (done) throw new DamageError('its end is missing');
    const { name, size = 0 } = entry.header;
    if (name === END_ENTRY) {
      const end = await readText(entry, size);
      if (end !== JSON.stringify(digest.end())) throw new DamageError('its content differs from its digest');
      if (!(await orDamage(entries.next())).done) throw new DamageError('it continues after its end');
      return;
    }
    digest.begin(name, size);
    const content = digested(entry, digest);
    if ((await take({ name, size, content })) === 'stop') return;
    // The digest includes what `take` did not read.
    for await (const _ of content);
  }
}

async function* digested(content: AsyncIterable<unknown>, digest: EntryDigest): AsyncGenerator<Uint8Array, void> {
  const chunks = content[Symbol.asyncIterator]();
  for (;;) {
    const { value, done } = await orDamage(chunks.next());
    if (done) return;
    assert(value instanceof Uint8Array, 'an archive consists of bytes');
    digest.update(value);
    yield value;
  }
}

async function readText(content: AsyncIterable<unknown>, size: number): Promise<string> {
  if (size > END_BYTES_MAX) throw new DamageError('its last entry is too long');
  return Buffer.concat(await Array.fromAsync(digested(content, new EntryDigest()))).toString();
}

/** A fault of the archive itself, not of `take`. */
class DamageError extends Error {}

async function orDamage<Result>(reading: Promise<Result>): Promise<Result> {
  return await reading.catch((cause: unknown) => {
    throw new DamageError('it cannot be unpacked', { cause });
  });
}
