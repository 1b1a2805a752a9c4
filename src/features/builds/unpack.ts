import { mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { PassThrough, Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { type Extract, extract, type Header } from 'tar-stream';
import { assert, ServiceError } from '../../platform/errors.ts';
import { isErrno } from '../../platform/processes.ts';

/** Limits against archives that expand to huge sizes (reliability-security A3). */
export const UNPACK_LIMITS = {
  entries: 100_000,
  depth: 32,
  name_bytes: 1_024,
  unpacked_bytes: 16 * 1024 ** 3,
  /** Unpacked bytes per byte of the archive, after the first 64 MiB. */
  ratio: 200,
};
export type UnpackLimits = typeof UNPACK_LIMITS;

/** Reserves disk space for a number of bytes; throws if there is none. */
type TakeRoom = (bytes: number) => Promise<void>;

interface UnpackOptions {
  limits?: UnpackLimits;
  takeRoom?: TakeRoom;
}

const RATIO_FREE_BYTES = 64 * 1024 ** 2;
const GZIP_MAGIC = '1f8b';
const ZSTD_MAGIC = '28b52ffd';
const MAGIC_BYTES = 4;
/** A tar consists of blocks; the last ones are zeros. */
const BLOCK_BYTES = 512;
/** Length of a name in a message. */
const QUOTED_MAX = 120;

/**
 * Unpacks a tar into a new directory; its first bytes say whether it is plain, gzip or zstd. The content may be hostile:
 * writes only files and folders inside the directory, each file once, and ignores owners, times and modes, except that a
 * file is executable. Throws BUILDS_BUILD_INVALID with the name of the entry; then the caller removes the directory.
 */
export async function unpackArchive(
  archive: ReadableStream<Uint8Array>,
  directory: string,
  { limits = UNPACK_LIMITS, takeRoom = async () => {} }: UnpackOptions = {},
): Promise<void> {
  const meter: Meter = { packed: 0, unpacked: 0, last_block: Buffer.alloc(0), last_name: undefined };
  const { first_bytes, all } = await peek(archive, meter);
  const tar = extract();
  const bytes = pipeline(
    Readable.from(all),
    createDecompressor(first_bytes),
    createBrake(meter, limits, takeRoom),
    tar,
  );
  // Waits for both ends before the caller uses the directory. If one end refuses the archive, the other one only reports
  // a broken stream, so the refusal is thrown.
  const ends = await Promise.allSettled([takeEntries(tar, directory, { meter, limits }), bytes]);
  const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
  const refused = failures.find((failure) => failure instanceof ServiceError || isDiskTrouble(failure));
  if (refused) throw refused;
  const where = meter.last_name === undefined ? '' : ` in or after ${quote(meter.last_name)}`;
  if (failures.length > 0) throw invalid(`it is not a tar, or is damaged${where}`, failures[0]);
  // A tar cut between two entries reads like a complete one, and the decompressor of zstd does not report a truncated
  // input.
  if (!isEndMark(meter.last_block))
    throw invalid(`its end is missing, so packing or copying it was interrupted${where}`);
}

type Entry = Extract extends AsyncIterable<infer Item> ? Item : never;

interface Meter {
  packed: number;
  unpacked: number;
  last_block: Buffer;
  /** The name of the latest entry. */
  last_name: string | undefined;
}

/** Returns the first bytes in hexadecimal, and the whole stream with its bytes counted. */
async function peek(stream: ReadableStream<Uint8Array>, meter: Meter) {
  const reader = stream.getReader();
  let first = Buffer.alloc(0);
  while (first.length < MAGIC_BYTES) {
    const { value } = await reader.read();
    if (!value) break;
    first = Buffer.concat([first, value]);
  }
  async function* all(): AsyncGenerator<Uint8Array> {
    let chunk: Uint8Array | undefined = first;
    try {
      while (chunk) {
        meter.packed += chunk.length;
        yield chunk;
        chunk = (await reader.read()).value;
      }
    } finally {
      await reader.cancel();
    }
  }
  return { first_bytes: first.toString('hex', 0, MAGIC_BYTES), all: all() };
}

function createDecompressor(first_bytes: string) {
  if (first_bytes.startsWith(GZIP_MAGIC)) return createGunzip();
  return first_bytes === ZSTD_MAGIC ? createZstdDecompress() : new PassThrough();
}

/** Stops the stream when it exceeds the limits of an honest archive or the disk space. */
function createBrake(meter: Meter, limits: UnpackLimits, takeRoom: TakeRoom): Transform {
  return new Transform({
    transform(chunk: Uint8Array, _encoding, next) {
      meter.unpacked += chunk.length;
      const before = chunk.length < BLOCK_BYTES ? meter.last_block : Buffer.alloc(0);
      meter.last_block = Buffer.concat([before, chunk.subarray(-BLOCK_BYTES)]).subarray(-BLOCK_BYTES);
      const allowed = Math.min(limits.unpacked_bytes, RATIO_FREE_BYTES + meter.packed * limits.ratio);
      if (meter.unpacked > allowed) return next(invalid(`it unpacks to more than ${allowed} bytes`));
      takeRoom(chunk.length).then(() => next(null, chunk), next);
    },
  });
}

function isEndMark(block: Buffer): boolean {
  return block.length === BLOCK_BYTES && block.every((byte) => byte === 0);
}

interface Bounds {
  meter: Meter;
  limits: UnpackLimits;
}

async function takeEntries(tar: Extract, directory: string, { meter, limits }: Bounds): Promise<void> {
  let count = 0;
  for await (const entry of tar) {
    count += 1;
    meter.last_name = entry.header.name;
    if (count > limits.entries) throw invalid(`it holds more than ${limits.entries} entries`);
    const path = checkedPath(entry.header, limits);
    if (isFolder(entry.header)) await makeFolder(entry, join(directory, path));
    else await writeFile(entry, join(directory, path));
    // tar-stream continues once this entry has been read to its end.
    entry.resume();
  }
  if (count === 0) throw invalid('it is empty, or not a tar');
}

/** Old tars mark a folder only by a slash at the end of its name, and tar-stream reports it as an empty file. */
function isFolder({ name, type, size }: Header): boolean {
  return type === 'directory' || (type === 'file' && name.endsWith('/') && size === 0);
}

/** Returns the name of an entry, relative and inside the directory. Empty for the directory itself. */
function checkedPath(header: Header, limits: UnpackLimits): string {
  const { name, type, linkname, pax } = header;
  if (type === 'symlink' || type === 'link') {
    const option = type === 'symlink' ? '--dereference' : '--hard-dereference';
    throw invalid(`${quote(name)} is a link to ${quote(linkname ?? '')}; pack the file itself (tar ${option})`);
  }
  // The content of a sparse file is a map of its holes and the rest, under another name.
  if (Object.keys(pax ?? {}).some((key) => key.startsWith('GNU.sparse.'))) {
    throw invalid(`${quote(name)} is a sparse file; pack it whole (tar without --sparse)`);
  }
  if (type !== 'file' && type !== 'contiguous-file' && type !== 'directory') {
    throw invalid(`${quote(name)} is neither a file nor a folder`);
  }
  const is_folder = isFolder(header);
  const segments = (is_folder ? name.replace(/\/+$/, '') : name).split('/');
  while (segments[0] === '.') segments.shift();
  const is_inside =
    !name.startsWith('/') && segments.every((segment) => segment !== '' && segment !== '.' && segment !== '..');
  // File names must not have control characters or backslashes. U+FFFD replaces bytes that are not UTF-8, so the file
  // could not be found by its name.
  if (!is_inside || /[\p{Cc}\\\ufffd]/u.test(name))
    throw invalid(`${quote(name)} is not a plain path inside the archive`);
  if (Buffer.byteLength(name) > limits.name_bytes || segments.some((segment) => Buffer.byteLength(segment) > 255)) {
    throw invalid(`the name ${quote(name)}… is too long`);
  }
  if (segments.length > limits.depth) throw invalid(`${quote(name)} is more than ${limits.depth} folders deep`);
  if (segments.length === 0 && !is_folder) throw invalid('an entry has no name');
  return segments.join('/');
}

async function makeFolder(entry: Entry, path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o755 });
  } catch (error) {
    if (!isErrno(error, 'EEXIST') && !isErrno(error, 'ENOTDIR')) throw error;
    throw invalid(`${quote(entry.header.name)} needs a folder where the archive has a file`, error);
  }
}

async function writeFile(entry: Entry, file: string): Promise<void> {
  const is_executable = (entry.header.mode & 0o111) !== 0;
  await makeFolder(entry, dirname(file));
  // With "wx" the file system refuses a second entry of one name, or one in the place of a folder.
  const handle = await open(file, 'wx', is_executable ? 0o755 : 0o644).catch((error: unknown) => {
    throw isErrno(error, 'EEXIST') ? invalid(`${quote(entry.header.name)} occurs twice`, error) : error;
  });
  try {
    for await (const chunk of entry) {
      assert(chunk instanceof Uint8Array, 'a tar entry yields bytes');
      await handle.writeFile(chunk);
    }
  } finally {
    await handle.close();
  }
}

/** Returns whether the disk failed (it may be full), rather than the archive being invalid. */
function isDiskTrouble(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error;
}

function quote(name: string): string {
  return JSON.stringify(name.slice(0, QUOTED_MAX));
}

function invalid(error: string, cause?: unknown): ServiceError {
  return new ServiceError('BUILDS_BUILD_INVALID', { error }, { cause });
}
