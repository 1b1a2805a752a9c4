import { closeSync, openSync } from 'node:fs';
import { open, truncate } from 'node:fs/promises';
import { LRUCache } from 'lru-cache';
import { after, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { punchHole } from '../../platform/libc.ts';
import { isErrno } from '../../platform/processes.ts';
import { selectLines, takeLines } from './log-lines.ts';
import type { LogName } from './log-store.ts';
import * as store from './log-store.ts';

/** The largest piece to read at once, which bounds the work between two turns of the event loop. */
export const PIECE_BYTES_MAX = 256 * 1024;
/** Unread output beyond this is dropped, because the server writes faster than its log can be stored. */
const BACKLOG_BYTES_MAX = 8 * 1024 ** 2;
/** Bytes to keep of each log. */
const LOG_BYTES_MAX = 16 * 1024 ** 2;
const LINE_BYTES_MAX = 16 * 1024;
const LINES_PER_ANSWER_MAX = 256;
/** Retention of the reference API (field-behaviour 2). */
export const LOGS_KEPT_FOR_MS = 3 * 24 * 3_600_000;
const FORGOTTEN_AT_ONCE_MAX = 1_000;
/** Number of oldest pieces to check when a new piece exceeds the limit of a log. */
const TRIMMED_AT_ONCE_MAX = 64;
const CURSORS_MAX = 20_000;

/** The position up to which a log has been read. */
interface Cursor {
  offset: number;
  next_line: number;
  total_bytes: number;
}

/** Output that was moved into the database. */
export interface Collected {
  bytes: number;
  /** Whether more output remains. */
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
 * Creates the logs of servers. Servers write to files; complete lines move from there into the database, where every
 * process can read them. A piece and the position after it are one row, so no line is lost or stored twice.
 */
export function createLogs({ database, clock, isSpaceLow = async () => false }: LogsDependencies) {
  const cursors = new LRUCache<string, Cursor>({ max: CURSORS_MAX });
  const turns = new Map<string, Promise<void>>();

  /** Serializes the work on each log, because a piece starts where the previous one ended. */
  async function inTurn<Result>(name: LogName, work: (cursor: Cursor) => Promise<Result>): Promise<Result> {
    const key = `${name.server_id} ${name.stream}`;
    const turn = (turns.get(key) ?? Promise.resolve()).then(async () => {
      const cursor = cursors.get(key) ?? (await readCursor(name));
      // After a failure only the database knows whether the piece was added.
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
    // The server truncated its file, for example with `> /dev/stdout` in a script.
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
    // Once the server has ended its files are removed as a whole.
    if (is_dropping && !has_ended) await discard(file, cursor.offset);
    else if (line_count > 0) freeBlocks(file, cursor.offset);
    return { bytes: consumed_bytes, has_more: line_count > 0 && !is_all };
  }

  return {
    /** Moves the next piece of a server's output into the database. */
    collect: (name: LogName, file: string, has_ended: boolean): Promise<Collected> =>
      inTurn(name, (cursor) => collect(name, cursor, file, has_ended)),
    /** Adds a line of the service. */
    addLine: (name: LogName, text: string): Promise<void> =>
      inTurn(name, (cursor) => add(name, cursor, Buffer.from(`${text}\n`), 1, cursor.offset)),
    /** Adds a line of the service as the last line. Repeating it adds nothing. */
    addLastLine: (name: LogName, text: string): Promise<void> =>
      inTurn(name, async (cursor) => {
        const line = Buffer.from(`${text}\n`);
        const last = await store.selectLastChunk(database.queries, name);
        if (last && line.equals(last.content)) return;
        await add(name, cursor, line, 1, cursor.offset);
      }),
    /** Returns the lines from a number on, as many as fit into an answer. Skips lines that are no longer kept. */
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
        // After a gap, continues with the first line that is kept.
        next_line = first_line + (fitting.length > 0 ? skipped + fitting.length : line_count);
      }
      return { lines, next_line };
    },
    /** Returns the last lines. */
    async lastLines(name: LogName): Promise<LogLines> {
      const chunks = await store.selectLastChunks(database.queries, name, LINES_PER_ANSWER_MAX);
      const lines = chunks.flatMap(({ content, line_count, ts }) => {
        const skipped = Math.max(line_count - LINES_PER_ANSWER_MAX, 0);
        return selectLines(content, { skipped, count: LINES_PER_ANSWER_MAX }).map((bytes) => ({ bytes, ts }));
      });
      const last = chunks.at(-1);
      return { lines: lines.slice(-LINES_PER_ANSWER_MAX), next_line: last ? last.first_line + last.line_count : 0 };
    },
    /** Deletes a batch of old pieces. Returns how many; more may remain unless it is 0. */
    forgetOld: () =>
      store.forgetChunksBefore(database.queries, after(clock.now(), -LOGS_KEPT_FOR_MS), FORGOTTEN_AT_ONCE_MAX),
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

const BLOCK_BYTES = 4_096;
const FREED_FROM_BYTES = 256 * 1024;

/**
 * Frees the disk blocks at the start of a file with fallocate(2). Offsets stay the same, so the writer is not affected.
 * It blocks for 0.3 ms per MiB, so use it for recently read output only. A file system without holes keeps the file
 * until the server ends.
 */
function freeBlocks(path: string, offset: number): void {
  const length = Math.floor(offset / BLOCK_BYTES) * BLOCK_BYTES;
  if (length < FREED_FROM_BYTES) return;
  try {
    const file = openSync(path, 'r+');
    punchHole(file, length);
    closeSync(file);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
}

/**
 * Discards the content of a file and leaves a hole of this length, however large the file has become; later output
 * follows the hole. Freeing a gigabyte takes a third of a second outside of the event loop.
 */
async function discard(file: string, length: number): Promise<void> {
  try {
    await truncate(file, 0);
    await truncate(file, length);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
}
