import { dlopen, FFIType } from 'bun:ffi';
import { closeSync, openSync } from 'node:fs';
import { open, truncate } from 'node:fs/promises';
import { LRUCache } from 'lru-cache';
import { after, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { isErrno } from '../../platform/processes.ts';
import { selectLines, takeLines } from './log-lines.ts';
import type { LogName } from './log-store.ts';
import * as store from './log-store.ts';

/** The largest piece that is read at one time: a bound on the work between two turns of the event loop. */
export const PIECE_BYTES_MAX = 256 * 1024;
/** Unread output beyond this is dropped: the server writes faster than its log can be kept. */
const BACKLOG_BYTES_MAX = 8 * 1024 ** 2;
/** What is kept of each log. */
const LOG_BYTES_MAX = 16 * 1024 ** 2;
const LINE_BYTES_MAX = 16 * 1024;
const LINES_PER_ANSWER_MAX = 256;
/** The field's retention (field-behaviour 2). */
const KEPT_FOR_MS = 3 * 24 * 3_600_000;
const FORGOTTEN_AT_ONCE_MAX = 1_000;
/** One piece pushes out one of its size, or as many small ones as there are; these are looked at first. */
const TRIMMED_AT_ONCE_MAX = 64;
const CURSORS_MAX = 20_000;

/** Where the reading of a log stands. */
interface Cursor {
  offset: number;
  next_line: number;
  total_bytes: number;
}

/** What was moved into the database. */
export interface Collected {
  bytes: number;
  /** Whether there was more to move. */
  has_more: boolean;
}

/** Lines of a log with the number of the next one. */
export interface LogLines {
  lines: { bytes: Uint8Array; ts: Date }[];
  next_line: number;
}

interface LogsDependencies {
  database: Database;
  clock: Clock;
  /** Whether the disk of the database is nearly full. */
  isSpaceLow?: () => Promise<boolean>;
}

export type Logs = ReturnType<typeof createLogs>;

/**
 * What servers wrote. They write to files; from there whole lines are moved into the database, where every process can
 * read them: nothing is lost and nothing comes twice, because a piece and the place to go on from are one row.
 */
export function createLogs({ database, clock, isSpaceLow = async () => false }: LogsDependencies) {
  const cursors = new LRUCache<string, Cursor>({ max: CURSORS_MAX });
  const turns = new Map<string, Promise<void>>();

  /** Does work on each log one after the other: a piece begins where the one before ended. */
  async function inTurn<Result>(name: LogName, work: (cursor: Cursor) => Promise<Result>): Promise<Result> {
    const key = `${name.server_id} ${name.stream}`;
    const turn = (turns.get(key) ?? Promise.resolve()).then(async () => {
      const cursor = cursors.get(key) ?? (await readCursor(name));
      // When it fails, only the database knows whether the piece was added.
      cursors.delete(key);
      const result = await work(cursor);
      cursors.set(key, cursor);
      return result;
    });
    const settled = turn.then(
      () => {},
      () => {},
    );
    turns.set(key, settled);
    try {
      return await turn;
    } finally {
      if (turns.get(key) === settled) turns.delete(key);
    }
  }

  async function readCursor(name: LogName): Promise<Cursor> {
    const last = await store.selectLastChunk(database.queries, name);
    return last
      ? { offset: last.end_offset, next_line: last.first_line + last.line_count, total_bytes: last.total_bytes }
      : { offset: 0, next_line: 0, total_bytes: 0 };
  }

  async function add(name: LogName, cursor: Cursor, content: Uint8Array, line_count: number, end_offset: number) {
    const total_bytes = cursor.total_bytes + content.length;
    const chunk = {
      ...name,
      first_line: cursor.next_line,
      line_count,
      ts: clock.now(),
      end_offset,
      total_bytes,
      content,
    };
    await store.insertChunk(database.queries, chunk);
    Object.assign(cursor, { offset: end_offset, next_line: cursor.next_line + line_count, total_bytes });
    if (total_bytes > LOG_BYTES_MAX) await deleteBeyondLimit(name, total_bytes - LOG_BYTES_MAX);
  }

  async function deleteBeyondLimit(name: LogName, total_bytes: number): Promise<void> {
    const batch = { total_bytes, limit: TRIMMED_AT_ONCE_MAX };
    while ((await store.deleteChunksUpTo(database.queries, name, batch)) === TRIMMED_AT_ONCE_MAX);
  }

  async function collect(name: LogName, cursor: Cursor, file: string, has_ended: boolean): Promise<Collected> {
    const { size } = Bun.file(file);
    // The server emptied it: `> /dev/stdout` in a script does so.
    if (size < cursor.offset) cursor.offset = 0;
    if (size === cursor.offset) return { bytes: 0, has_more: false };
    const is_space_low = !has_ended && (await isSpaceLow());
    const kept_bytes_max = is_space_low ? 0 : PIECE_BYTES_MAX;
    const is_dropping = size - cursor.offset > (is_space_low ? PIECE_BYTES_MAX : BACKLOG_BYTES_MAX);
    if (is_dropping) {
      const dropped = size - kept_bytes_max - cursor.offset;
      const why = is_space_low
        ? "the service's disk is nearly full"
        : 'the server writes faster than its log can be kept';
      const line = `[muster] at least ${dropped} bytes dropped: ${why}\n`;
      await add(name, cursor, Buffer.from(line), 1, cursor.offset + dropped);
    }
    if (is_space_low) {
      if (is_dropping) await discard(file, cursor.offset);
      return { bytes: 0, has_more: false };
    }
    const output = await readPiece(file, cursor.offset, Math.min(size - cursor.offset, PIECE_BYTES_MAX));
    const is_all = cursor.offset + output.length >= size;
    const { content, line_count, consumed_bytes } = takeLines(output, LINE_BYTES_MAX, has_ended && is_all);
    if (line_count > 0) await add(name, cursor, content, line_count, cursor.offset + consumed_bytes);
    // After the end of the server its files are removed as a whole.
    if (is_dropping && !has_ended) await discard(file, cursor.offset);
    else if (line_count > 0) freeBlocks(file, cursor.offset);
    return { bytes: consumed_bytes, has_more: line_count > 0 && !is_all };
  }

  return {
    /** Moves the next piece of what a server wrote into the database. */
    collect: (name: LogName, file: string, has_ended: boolean): Promise<Collected> =>
      inTurn(name, (cursor) => collect(name, cursor, file, has_ended)),
    /** Adds a line of our own. */
    addLine: (name: LogName, text: string): Promise<void> =>
      inTurn(name, (cursor) => add(name, cursor, Buffer.from(`${text}\n`), 1, cursor.offset)),
    /** Adds a line of our own as the last one, once however often that is repeated. */
    addLastLine: (name: LogName, text: string): Promise<void> =>
      inTurn(name, async (cursor) => {
        const line = Buffer.from(`${text}\n`);
        const last = await store.selectLastChunk(database.queries, name);
        if (last && line.equals(last.content)) return;
        await add(name, cursor, line, 1, cursor.offset);
      }),
    /** The lines from a number on, as many as fit into an answer. What is no longer kept is passed over. */
    async linesFrom(name: LogName, line: number): Promise<LogLines> {
      const chunks = await store.selectChunksFrom(database.queries, name, {
        line,
        lines_wanted: LINES_PER_ANSWER_MAX,
      });
      const lines: LogLines['lines'] = [];
      let next_line = line;
      for (const { first_line, line_count, content, ts } of chunks) {
        if (lines.length === LINES_PER_ANSWER_MAX) break;
        const skipped = Math.max(line - first_line, 0);
        const fitting = selectLines(content, { skipped, count: LINES_PER_ANSWER_MAX - lines.length });
        for (const bytes of fitting) lines.push({ bytes, ts });
        // Behind a mark it goes on with what is kept.
        next_line = first_line + (fitting.length > 0 ? skipped + fitting.length : line_count);
      }
      return { lines, next_line };
    },
    /** The last lines. */
    async lastLines(name: LogName): Promise<LogLines> {
      const chunks = await store.selectLastChunks(database.queries, name, LINES_PER_ANSWER_MAX);
      const lines = chunks.flatMap(({ content, line_count, ts }) => {
        const skipped = Math.max(line_count - LINES_PER_ANSWER_MAX, 0);
        return selectLines(content, { skipped, count: LINES_PER_ANSWER_MAX }).map((bytes) => ({ bytes, ts }));
      });
      const last = chunks.at(-1);
      return { lines: lines.slice(-LINES_PER_ANSWER_MAX), next_line: last ? last.first_line + last.line_count : 0 };
    },
    /** Forgets some of the old pieces. Returns how many; there may be more unless it is 0. */
    forgetOld: () =>
      store.forgetChunksBefore(database.queries, after(clock.now(), -KEPT_FOR_MS), FORGOTTEN_AT_ONCE_MAX),
  };
}

async function readPiece(path: string, offset: number, length: number): Promise<Uint8Array> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

const FALLOC_KEEP_SIZE = 1;
const FALLOC_PUNCH_HOLE = 2;
const BLOCK_BYTES = 4_096;
const FREED_FROM_BYTES = 256 * 1024;

const libc = dlopen('libc.so.6', {
  fallocate: { args: [FFIType.i32, FFIType.i32, FFIType.i64, FFIType.i64], returns: FFIType.i32 },
});

/**
 * Frees the disk blocks at the beginning of a file: fallocate(2) makes a hole of them, and the offsets stay as they are, so
 * that the writer need not know. It blocks for 0.3 ms for each MiB, so it is for what was read in the last rounds. A file
 * system that cannot make holes keeps the file until the server has ended.
 */
function freeBlocks(path: string, offset: number): void {
  const length = Math.floor(offset / BLOCK_BYTES) * BLOCK_BYTES;
  if (length < FREED_FROM_BYTES) return;
  try {
    const file = openSync(path, 'r+');
    libc.symbols.fallocate(file, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, 0n, BigInt(length));
    closeSync(file);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
}

/**
 * Throws the content of a file away and leaves a hole of this length, whatever the file has grown to meanwhile: output
 * that is appended then lies behind the hole. Freeing a gigabyte takes a third of a second, and not of the event loop.
 */
async function discard(file: string, length: number): Promise<void> {
  try {
    await truncate(file, 0);
    await truncate(file, length);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
}
