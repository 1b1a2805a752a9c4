import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { extract, type Header } from 'tar-stream';
import { ServiceError } from '../../../platform/errors.ts';
import { systemCodeOf } from '../../../platform/system/system-errors.ts';
import { createDecompressor, MAGIC_BYTES } from './compression.ts';
import { invalid, quote } from './invalid-build.ts';
import type { TarEntry } from './tar-entry.ts';

/**
 * Limits against archives that expand to huge sizes. The patch of tar-stream (`patches/`) limits the headers before an
 * entry, which do not count as entries: 64 KiB each, at most eight in a row. It ignores global records (PAX type g, which
 * apply to all entries that follow), because the library would copy them for each entry.
 */
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
export type TakeRoom = (bytes: number) => Promise<void>;

/** Counts what was read. The tars of one build share a count, so that the limits hold for all of them together. */
export interface UnpackCount {
  /** Bytes of the file that was uploaded. */
  packed_bytes: number;
  unpacked_bytes: number;
  entries: number;
}

export interface ReadTarOptions {
  limits: UnpackLimits;
  takeRoom: TakeRoom;
  count: UnpackCount;
  /** Called with all bytes of the tar, in order. */
  onBytes?: (bytes: Uint8Array) => void;
}

const RATIO_FREE_BYTES = 64 * 1024 ** 2;
/** A tar consists of blocks; the last ones are zeros. */
const BLOCK_BYTES = 512;

export const IS_EMPTY = 'it is empty, or not a tar';

/**
 * Reads a tar; its first bytes say whether it is plain or how it is compressed. Calls `take` for each entry, in order, and
 * ends once the whole stream was read. Throws BUILDS_BUILD_INVALID for a tar that is damaged or exceeds the limits.
 */
export async function readTar(
  archive: AsyncIterable<Uint8Array>,
  { limits, takeRoom, count, onBytes = () => {} }: ReadTarOptions,
  take: (entry: TarEntry) => Promise<void>,
): Promise<void> {
  const { first_bytes, all } = await peek(archive);
  const tar = extract();
  const end = { last_block: Buffer.alloc(0) };
  let last_name: string | undefined;

  async function takeEntries(): Promise<void> {
    for await (const entry of tar) {
      last_name = entry.header.name;
      count.entries += 1;
      checkEntryCount(count, limits);
      checkNameLengths(entry.header, limits);
      await take(entry);
      // tar-stream continues once this entry has been read to its end.
      entry.resume();
    }
  }

  const limiter = new Transform({
    transform(chunk: Uint8Array, _encoding, next) {
      onBytes(chunk);
      count.unpacked_bytes += chunk.length;
      const before = chunk.length < BLOCK_BYTES ? end.last_block : Buffer.alloc(0);
      end.last_block = Buffer.concat([before, chunk.subarray(-BLOCK_BYTES)]).subarray(-BLOCK_BYTES);
      const allowed = Math.min(limits.unpacked_bytes, RATIO_FREE_BYTES + count.packed_bytes * limits.ratio);
      if (count.unpacked_bytes > allowed) return next(invalid(`it unpacks to more than ${allowed} bytes`));
      takeRoom(chunk.length).then(() => next(null, chunk), next);
    },
  });
  const bytes = pipeline([Readable.from(all), createDecompressor(first_bytes), limiter, tar]);
  // Waits for both ends of the pipeline. If one refuses the archive, the other only reports a broken stream, so the
  // refusal is thrown.
  const ends = await Promise.allSettled([takeEntries(), bytes]);
  const failures = ends.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  const refused = failures.find((failure) => failure instanceof ServiceError || isDiskTrouble(failure));
  if (refused) throw refused;
  const where = last_name === undefined ? '' : ` in or after ${quote(last_name)}`;
  if (failures.length > 0) throw invalid(`it is not a tar, or is damaged${where}`, failures[0]);
  // A tar cut between two entries reads like a complete one, and the decompressor of zstd does not report a truncated
  // input.
  if (isEndMark(end.last_block)) return;
  if (last_name === undefined) throw invalid(IS_EMPTY);
  throw invalid(`its end is missing, so packing or copying it was interrupted${where}`);
}

/** Throws BUILDS_BUILD_INVALID if more was counted than an archive may hold. */
export function checkEntryCount({ entries }: UnpackCount, limits: UnpackLimits): void {
  if (entries > limits.entries) throw invalid(`it holds more than ${limits.entries} entries`);
}

/** Throws BUILDS_BUILD_INVALID if an entry has a name, or names another entry, that is too long to be kept in memory. */
function checkNameLengths({ name, linkname }: Header, limits: UnpackLimits): void {
  const long = [name, linkname ?? ''].find((one) => Buffer.byteLength(one) > limits.name_bytes);
  if (long !== undefined) throw invalid(`the name ${quote(long)}… is too long`);
}

/** Counts the bytes of a stream as those of the uploaded file. */
export async function* countPacked(
  stream: AsyncIterable<Uint8Array>,
  count: UnpackCount,
): AsyncGenerator<Uint8Array, void> {
  for await (const chunk of stream) {
    count.packed_bytes += chunk.length;
    yield chunk;
  }
}

/** Returns the first bytes, and the whole stream. */
async function peek(stream: AsyncIterable<Uint8Array>) {
  const chunks = stream[Symbol.asyncIterator]();
  let first = Buffer.alloc(0);
  while (first.length < MAGIC_BYTES) {
    const { value, done } = await chunks.next();
    if (done) break;
    first = Buffer.concat([first, value]);
  }
  async function* all(): AsyncGenerator<Uint8Array> {
    try {
      if (first.length > 0) yield first;
      for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value;
    } finally {
      await chunks.return?.();
    }
  }
  return { first_bytes: first, all: all() };
}

function isEndMark(block: Buffer): boolean {
  return block.length === BLOCK_BYTES && block.every((byte) => byte === 0);
}

/** Returns whether the disk failed (it may be full), rather than the archive being invalid. */
function isDiskTrouble(error: unknown): boolean {
  return systemCodeOf(error) !== undefined;
}
