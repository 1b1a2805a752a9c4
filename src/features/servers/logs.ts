import { dlopen, FFIType } from 'bun:ffi';
import { closeSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { LRUCache } from 'lru-cache';
import { after, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { isErrno } from '../../platform/processes.ts';
import { splitLines, takeLines } from './log-lines.ts';
import type { LogName } from './log-store.ts';
import * as store from './log-store.ts';

/** How much is read at one time. */
const READ_BYTES_MAX = 1024 ** 2;
/** A server that is further ahead than this loses what lies between: it writes faster than can be kept. */
const BACKLOG_BYTES_MAX = 8 * READ_BYTES_MAX;
/** What is kept of each log. */
const LOG_BYTES_MAX = 16 * 1024 ** 2;
const LINE_BYTES_MAX = 16 * 1024;
const LINES_PER_ANSWER_MAX = 256;
/** The field's retention (field-behaviour 2). */
const KEPT_FOR_MS = 3 * 24 * 3_600_000;
const DELETED_AT_ONCE_MAX = 1_000;
const CURSORS_MAX = 20_000;

/** Where the reading of a log stands. */
interface Cursor {
  offset: number;
  next_line: number;
  total_bytes: number;
}

/** Lines of a log with the number of the next one. */
export interface LogLines {
  lines: { bytes: Uint8Array; ts: Date }[];
  next_line: number;
}

export type Logs = ReturnType<typeof createLogs>;

/**
 * What servers wrote. They write to files; from there whole lines are moved into the database, where every process can
 * read them: nothing is lost and nothing comes twice, because a piece and the place to go on from are one row.
 */
export function createLogs({ database, clock }: { database: Database; clock: Clock }) {
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
    if (total_bytes > LOG_BYTES_MAX) {
      await store.deleteChunksUpTo(database.queries, name, total_bytes - LOG_BYTES_MAX);
    }
  }

  async function collect(name: LogName, cursor: Cursor, file: string, has_ended: boolean): Promise<boolean> {
    const { size } = Bun.file(file);
    // The server emptied it: whoever writes to /dev/stdout may do so without knowing.
    if (size < cursor.offset) cursor.offset = 0;
    if (size - cursor.offset > BACKLOG_BYTES_MAX) {
      const dropped = size - READ_BYTES_MAX - cursor.offset;
      const line = Buffer.from(
        `[muster] ${dropped} bytes dropped: the server writes faster than its log can be kept\n`,
      );
      await add(name, cursor, line, 1, cursor.offset + dropped);
    }
    if (size <= cursor.offset) return false;
    const output = await readPiece(file, cursor.offset);
    const is_all = cursor.offset + output.length >= size;
    const { content, line_count, consumed_bytes } = takeLines(output, LINE_BYTES_MAX, has_ended && is_all);
    if (line_count === 0) return false;
    await add(name, cursor, content, line_count, cursor.offset + consumed_bytes);
    giveBack(file, cursor.offset);
    return !is_all;
  }

  return {
    /** Moves what a server wrote since the last time into the database. Gives whether there may be more. */
    collect: (name: LogName, file: string, has_ended: boolean): Promise<boolean> =>
      inTurn(name, (cursor) => collect(name, cursor, file, has_ended)),
    /** Adds a line of our own. */
    addLine: (name: LogName, text: string): Promise<void> =>
      inTurn(name, (cursor) => add(name, cursor, Buffer.from(`${text}\n`), 1, cursor.offset)),
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
        const start = Math.max(line - first_line, 0);
        const fitting = splitLines(content).slice(start, start + LINES_PER_ANSWER_MAX - lines.length);
        for (const bytes of fitting) lines.push({ bytes, ts });
        // Behind a mark it goes on with what is kept.
        next_line = first_line + (fitting.length > 0 ? start + fitting.length : line_count);
      }
      return { lines, next_line };
    },
    /** The last lines. */
    async lastLines(name: LogName): Promise<LogLines> {
      const chunks = await store.selectLastChunks(database.queries, name, LINES_PER_ANSWER_MAX);
      const lines = chunks.flatMap(({ content, ts }) => splitLines(content).map((bytes) => ({ bytes, ts })));
      const last = chunks.at(-1);
      return { lines: lines.slice(-LINES_PER_ANSWER_MAX), next_line: last ? last.first_line + last.line_count : 0 };
    },
    /** Forgets old lines. Gives how many pieces they were. */
    forgetOld: () => store.forgetChunksBefore(database.queries, after(clock.now(), -KEPT_FOR_MS), DELETED_AT_ONCE_MAX),
  };
}

async function readPiece(path: string, offset: number): Promise<Uint8Array> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(READ_BYTES_MAX), 0, READ_BYTES_MAX, offset);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

const FALLOC_KEEP_SIZE = 1;
const FALLOC_PUNCH_HOLE = 2;
const BLOCK_BYTES = 4_096;
const GIVEN_BACK_FROM_BYTES = 256 * 1024;

const libc = dlopen('libc.so.6', {
  fallocate: { args: [FFIType.i32, FFIType.i32, FFIType.i64, FFIType.i64], returns: FFIType.i32 },
});

/**
 * Gives the beginning of a file back to the disk: fallocate(2) makes a hole of it, and the offsets stay as they are, so
 * that the writer need not know. A file system that cannot do so keeps the file until the server has ended.
 */
function giveBack(path: string, offset: number): void {
  const length = Math.floor(offset / BLOCK_BYTES) * BLOCK_BYTES;
  if (length < GIVEN_BACK_FROM_BYTES) return;
  try {
    const file = openSync(path, 'r+');
    libc.symbols.fallocate(file, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, 0n, BigInt(length));
    closeSync(file);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
}
