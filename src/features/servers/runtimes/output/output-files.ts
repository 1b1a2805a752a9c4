import { constants, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { punchHole } from '../../../../platform/system/libc.ts';
import { hasErrorCode } from '../../../../platform/system/system-errors.ts';
import { BACKLOG_BYTES_MAX, type OutputPiece, type OutputQuery } from '../runtime.ts';
import { createWriteTimes, type ReachedSize } from './write-times.ts';

const BLOCK_BYTES = 4_096;
/** Space is freed once at least this much before the resume point is allocated. */
const FREED_FROM_BYTES = 256 * 1024;
/** `stat` counts allocated space in units of this size on every file system. */
const STAT_BLOCK_BYTES = 512;

export interface OutputFiles {
  /** Reads a piece of a file. One that does not exist, or that its server keeps from being opened, is empty. */
  read(file: string, query: OutputQuery): Promise<OutputPiece>;
  /** Records when the original of a file that is a copy reached a size. Then its lines have these times. */
  noteReached(file: string, reached: ReachedSize): void;
  /**
   * Returns how much disk files take beyond their unread output: space that the server allocated in advance, and output
   * that was read and is not freed yet.
   */
  heldBytes(files: readonly string[]): number;
  /** Forgets a file that is removed. */
  forget(file: string): void;
}

/**
 * Reads the files that servers append their output to. A resume point is an offset. It stays valid, because space before
 * it is freed as a hole, so the writer is not affected. `are_copies`: this process writes the files, at fixed offsets, so
 * they must not shrink.
 */
export function createOutputFiles({ are_copies = false } = {}): OutputFiles {
  /**
   * Files whose last reading skipped output. The next reading empties them, because freeing only the part that was read
   * would block for too long.
   */
  const flooded = new Set<string>();
  const write_times = createWriteTimes();
  /** Where the last piece of each file began. */
  const read_from = new Map<string, number>();

  async function read(file: string, { from: recorded = '0', ...limits }: OutputQuery): Promise<OutputPiece> {
    const stats = statSync(file, { throwIfNoEntry: false });
    if (!stats) return pieceAt(Number(recorded));
    const { size, blocks } = stats;
    // A server can make its file longer than any offset that can be read.
    if (!Number.isSafeInteger(size)) flooded.add(file);
    // A server may truncate its file, for example with `> /dev/stdout` in a script.
    const from = size < Number(recorded) ? 0 : Number(recorded);
    write_times.noteRead(file, from, stats);
    read_from.set(file, from);
    if (flooded.has(file)) {
      const is_empty = are_copies ? await freeBlocks(file, size) : await discard(file, from);
      if (!is_empty) return pieceAt(from);
      flooded.delete(file);
      return pieceAt(are_copies ? size : from, { skipped_bytes: size - from });
    }
    const freeable_bytes = Math.min(blocks * STAT_BLOCK_BYTES - (size - from), from);
    if (freeable_bytes >= FREED_FROM_BYTES) await freeBlocks(file, from);
    if (size === from) return pieceAt(from);
    const is_flooded = size - from > limits.backlog_bytes_max;
    const start = is_flooded ? size - limits.bytes_max : from;
    const bytes = await readBytes(file, start, Math.min(size - start, limits.bytes_max));
    if (!bytes) return pieceAt(from);
    if (is_flooded) flooded.add(file);
    const written = write_times.partsOf(file, { start, length: bytes.length });
    return pieceAt(start, { bytes, skipped_bytes: start - from, has_more: start + bytes.length < size, written });
  }

  function heldByFile(file: string): number {
    const from = read_from.get(file);
    const stats = from === undefined ? undefined : statSync(file, { throwIfNoEntry: false });
    if (!stats || from === undefined) return 0;
    // A server can make its file longer without writing to it (fallocate(2)), so little of it counts as unread output.
    const unread = Math.min(Math.max(0, stats.size - from), BACKLOG_BYTES_MAX);
    return Math.max(0, stats.blocks * STAT_BLOCK_BYTES - unread);
  }

  return {
    read,
    noteReached: write_times.noteReached,
    heldBytes: (files) => files.reduce((sum, file) => sum + heldByFile(file), 0),
    forget(file) {
      read_from.delete(file);
      flooded.delete(file);
      write_times.forget(file);
    },
  };
}

/** Returns a piece of output that begins at an offset; by default an empty one. */
export function pieceAt(start: number, piece: Partial<OutputPiece> = {}): OutputPiece {
  const resumeAfter = (bytes: number) => String(start + bytes);
  return { bytes: new Uint8Array(), skipped_bytes: 0, has_more: false, resumeAfter, ...piece };
}

/**
 * Opens a file of a server. Returns undefined if it was removed, or if the server holds a lease on it: without O_NONBLOCK,
 * the kernel would let the open wait for 45 s.
 */
async function openFile(path: string, flags: number): Promise<FileHandle | undefined> {
  try {
    return await open(path, flags | constants.O_NONBLOCK);
  } catch (error) {
    if (!hasErrorCode(error, 'ENOENT') && !hasErrorCode(error, 'EAGAIN')) throw error;
    return undefined;
  }
}

async function readBytes(path: string, start: number, length: number): Promise<Uint8Array | undefined> {
  await using file = await openFile(path, constants.O_RDONLY);
  if (!file) return undefined;
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, start);
  return buffer.subarray(0, bytesRead);
}

/**
 * Frees the disk blocks at the start of a file with fallocate(2). It blocks for 0.3 ms per MiB, so use it for recently
 * read output only. A file system without holes keeps the file until the server ends. Returns false if it cannot be opened.
 */
async function freeBlocks(path: string, offset: number): Promise<boolean> {
  await using file = await openFile(path, constants.O_RDWR);
  if (!file) return false;
  punchHole(file.fd, Math.floor(offset / BLOCK_BYTES) * BLOCK_BYTES);
  return true;
}

/**
 * Discards the content of a file and leaves a hole of the given length. Later output follows the hole. Freeing a gigabyte
 * takes a third of a second, outside of the event loop. Returns false if the file cannot be opened.
 */
async function discard(path: string, length: number): Promise<boolean> {
  await using file = await openFile(path, constants.O_WRONLY);
  if (!file) return false;
  await file.truncate(0);
  await file.truncate(length);
  return true;
}
