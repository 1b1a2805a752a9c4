import {
  closeSync,
  createWriteStream,
  existsSync,
  fchmodSync,
  constants as file,
  fstatSync,
  ftruncateSync,
  openSync,
} from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress } from 'node:zlib';
import { type Pack, pack } from 'tar-stream';
import { assert, StartError } from '../errors.ts';
import { syncPath } from '../system/durable.ts';
import { tryLock } from '../system/libc.ts';
import { systemCodeOf } from '../system/system-errors.ts';
import { END_ENTRY, EntryDigest } from './archive-end.ts';
import { readArchive } from './archive-reader.ts';

/** Most of a backup is compressed already, so a higher level would only take longer. */
const ZSTD_LEVEL = 3;

type Content = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

export interface Archive {
  /** Adds an entry. Fails if the content has another size. */
  add(name: string, content: Content, size: number): Promise<void>;
}

interface WriteOptions {
  signal: AbortSignal;
  /** Called with the number of bytes that were just written to the file. */
  onWritten(bytes: number): void;
  /** Called when everything is written, before it is read again. */
  onChecking(): void;
}

/**
 * Writes an archive, a tar compressed by zstd, that only this user can read. The file gets its name only once it is complete
 * and on the disk, and was read again; a killed writer leaves `<path>.unfinished`, which the next one replaces. Throws
 * StartError if the file exists or cannot be written.
 */
export async function writeArchive(
  path: string,
  { signal, onWritten, onChecking }: WriteOptions,
  fill: (archive: Archive) => Promise<void>,
): Promise<void> {
  if (existsSync(path)) throw new StartError(`${path} exists already: name another file, or move this one away.`);
  const unfinished = `${path}.unfinished`;
  using locked = lockUnfinished(unfinished);
  try {
    await writeInto(locked.descriptor, unfinished, { signal, onWritten }, fill);
    await syncPath(unfinished).catch(rethrowAsWriteError(unfinished));
    onChecking();
    await readArchive(unfinished, { signal }, async () => undefined);
    await rename(unfinished, path).catch(rethrowAsWriteError(path));
    await syncPath(dirname(path)).catch(rethrowAsWriteError(path));
  } catch (cause) {
    await rm(unfinished, { force: true });
    throw cause;
  }
}

async function writeInto(
  descriptor: number,
  path: string,
  { signal, onWritten }: Pick<WriteOptions, 'signal' | 'onWritten'>,
  fill: (archive: Archive) => Promise<void>,
): Promise<void> {
  const tar = pack();
  // It fails with `output`, whose failure is thrown; without a listener, the event would end the process.
  tar.on('error', () => {});
  const compressor = createZstdCompress({
    params: { [constants.ZSTD_c_compressionLevel]: ZSTD_LEVEL, [constants.ZSTD_c_checksumFlag]: 1 },
  });
  const counter = new Transform({
    transform(chunk: Uint8Array, _encoding, next) {
      onWritten(chunk.length);
      next(null, chunk);
    },
  });
  // The open file, whatever has its name meanwhile.
  const output = createWriteStream(`/proc/self/fd/${descriptor}`, { flags: 'r+' });
  const writing = pipeline([Readable.from(tar), compressor, counter, output], { signal });
  const digest = new EntryDigest();
  const filling = async () => {
    await fill({ add: (name, content, size) => addEntry(tar, { name, content, size, digest }) });
    const end = Buffer.from(JSON.stringify(digest.end()));
    await addEntry(tar, { name: END_ENTRY, content: [end], size: end.length, digest: new EntryDigest() });
    tar.finalize();
    await writing;
  };
  try {
    // After a failure of `writing`, no more bytes are taken, so `filling` would wait forever. Only a failure of
    // `writing` may end the race: its success never resolves here.
    await Promise.race([filling(), writing.then(() => new Promise<never>(() => {}))]);
  } catch (cause) {
    // Failures of the content, such as a lost connection to the database, have codes of the system too.
    throw cause === output.errored ? asWriteError(path, cause) : cause;
  } finally {
    tar.destroy();
    await writing.catch(() => {});
  }
}

interface NewEntry {
  name: string;
  content: Content;
  size: number;
  digest: EntryDigest;
}

async function addEntry(tar: Pack, { name, content, size, digest }: NewEntry): Promise<void> {
  digest.begin(name, size);
  const ended = Promise.withResolvers<void>();
  const sink = tar.entry({ name, size, mode: 0o600 }, (error) => (error ? ended.reject(error) : ended.resolve()));
  // If the content fails, nothing awaits this promise.
  ended.promise.catch(() => {});
  sink.once('error', ended.reject);
  let added = 0;
  for await (const chunk of content) {
    added += chunk.length;
    assert(added <= size, `${name} has ${size} bytes`);
    digest.update(chunk);
    if (!sink.write(chunk)) await new Promise<void>((resolve) => sink.once('drain', () => resolve()));
  }
  assert(added === size, `${name} has ${size} bytes, not ${added}`);
  sink.end(undefined);
  await ended.promise;
}

/** The unfinished file, locked until it is disposed. */
interface UnfinishedFile extends Disposable {
  descriptor: number;
}

const NEW = file.O_WRONLY | file.O_CREAT | file.O_EXCL;
/** Does not wait for the reader of a pipe. */
const LEFT = file.O_WRONLY | file.O_NOFOLLOW | file.O_NONBLOCK;

/** Opens, locks and empties the unfinished file, so that two writers do not mix. */
function lockUnfinished(path: string): UnfinishedFile {
  try {
    const { descriptor, is_new } = openUnfinished(path);
    try {
      if (!is_new && !isOwnFile(descriptor))
        throw new StartError(`${path} is not a file of this user: ${REMOVE_ADVICE}.`);
      if (!tryLock(descriptor))
        throw new StartError(`Another backup is writing ${path}: wait for it, or name another file.`);
      ftruncateSync(descriptor);
      if (!is_new) fchmodSync(descriptor, 0o600);
    } catch (cause) {
      closeSync(descriptor);
      throw cause;
    }
    return { descriptor, [Symbol.dispose]: () => closeSync(descriptor) };
  } catch (cause) {
    throw asWriteError(path, cause);
  }
}

/** Creates the unfinished file, or opens the one that is there. A new one is this writer's, whatever owner a mount shows. */
function openUnfinished(path: string): { descriptor: number; is_new: boolean } {
  for (;;) {
    try {
      return { descriptor: openSync(path, NEW, 0o600), is_new: true };
    } catch (cause) {
      if (systemCodeOf(cause) !== 'EEXIST') throw cause;
    }
    try {
      return { descriptor: openSync(path, LEFT), is_new: false };
    } catch (cause) {
      // Another backup may have finished it just now.
      if (systemCodeOf(cause) !== 'ENOENT') throw cause;
    }
  }
}

const REMOVE_ADVICE = 'remove it, or name a file in a folder to which only this user can write';

/** Returns whether a backup may be written to an open file. Someone who left it there must not be able to read the backup. */
function isOwnFile(descriptor: number): boolean {
  const facts = fstatSync(descriptor);
  return facts.isFile() && facts.nlink === 1 && facts.uid === process.geteuid?.();
}

function asWriteError(path: string, cause: unknown): unknown {
  const code = systemCodeOf(cause);
  if (code === undefined) return cause;
  return new StartError(`The backup cannot be written at ${path} (${code}): ${adviceFor(code)}.`, { cause });
}

function adviceFor(code: string): string {
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'free space, or name a file on another disk';
  // A link, and a pipe.
  if (code === 'ELOOP' || code === 'ENXIO') return REMOVE_ADVICE;
  if (code === 'ENOENT') return 'create its folder, or name another file';
  return 'let this user write there, or name another file';
}

function rethrowAsWriteError(path: string): (cause: unknown) => never {
  return (cause) => {
    throw asWriteError(path, cause);
  };
}
