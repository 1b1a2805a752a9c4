import { LRUCache } from 'lru-cache';
import { after, type Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { BACKLOG_BYTES_MAX, type OutputPiece, type OutputQuery, type ResumePoint } from '../runtimes/runtime.ts';
import type { LogChunkRow } from '../tables.ts';
import { selectLines, takeLines } from './log-lines.ts';
import type { LogName } from './log-store.ts';
import * as store from './log-store.ts';
import { packTimes, type TimedLines, timeLines, timesOf } from './log-times.ts';

/** Maximum bytes of output to read at a time for a chunk. It bounds the work between two turns of the event loop. */
export const PIECE_BYTES_MAX = 256 * 1024;
/** Bytes to keep of each log, with what the database needs for each chunk. */
const LOG_BYTES_MAX = 16 * 1024 ** 2;
/** What the database stores of a chunk besides its content: its row, and the entries in its indexes. */
export const CHUNK_OVERHEAD_BYTES = 256;
const LINE_BYTES_MAX = 16 * 1024;
export const LINES_PER_ANSWER_MAX = 256;
/** As long as the reference API keeps them. */
export const LOGS_KEPT_FOR_MS = 3 * 24 * 3_600_000;
const DELETED_AT_ONCE_MAX = 1_000;
/** Number of oldest chunks to check when a new chunk exceeds the limit of a log. */
const TRIMMED_AT_ONCE_MAX = 64;
const CURSORS_MAX = 20_000;
/** Attempts to add to a log to which other processes add. */
const ATTEMPTS_MAX = 3;
/** Chunks to keep in memory, and for how long after they were read. */
const RECENT_CHUNKS_MAX = 32;
const RECENT_FOR_MS = 2_000;

/** The position up to which a log has been read. */
interface Cursor {
  resume_point: ResumePoint | null;
  next_line: number;
  total_bytes: number;
  /** When the last line was written; undefined if it is not kept. */
  ts?: Date;
}

/** Lines to add to a log. Lines of the service have no resume point. */
interface Addition {
  content: Uint8Array;
  line_count: number;
  /** When the lines were written; by default all of them now, or when the line before was written if that is later. */
  timed?: TimedLines[];
  resume_point?: ResumePoint | null;
}

/** Another process has added to a log, so that the known position is not its end. */
class LogMoved extends Error {
  constructor() {
    super('other processes added to this log at the same time, several times in a row, so nothing was added here');
  }
}

/** Reads the output of a server for one log. */
export type ReadOutput = (query: OutputQuery) => Promise<OutputPiece>;

/** Output that was moved into the database. */
export interface Collected {
  bytes: number;
  /** Whether more output remains. */
  has_more: boolean;
}

/** Lines of a log with the number of the next one. */
export interface LogLines {
  /** Each with its number in the stream, from 0. */
  lines: { number: number; bytes: Uint8Array; ts: Date }[];
  next_line: number;
}

export interface LogsDependencies {
  database: Database;
  clock: Clock;
  /** Whether the disk of the database is nearly full. */
  isSpaceLow?: () => Promise<boolean>;
}

export type Logs = ReturnType<typeof createLogs>;

/**
 * Creates the logs of servers. Complete lines of their output move into the database, where every process can read
 * them. A chunk and the position after it are one row, so no line is lost or stored twice.
 */
export function createLogs({ database, clock, isSpaceLow = async () => false }: LogsDependencies) {
  const cursors = new LRUCache<string, Cursor>({ max: CURSORS_MAX });
  /** The work under way on each log, which the next work on it awaits. */
  const work_under_way = new Map<string, Promise<void>>();
  /** The chunks that were read last, by log. They never change, except that their content is removed when it is old. */
  const recent_chunks = new LRUCache<string, LogChunkRow>({ max: RECENT_CHUNKS_MAX, ttl: RECENT_FOR_MS });

  /** Serializes the work on each log, because a chunk starts where the previous one ended. */
  async function withCursorLock<Result>(name: LogName, work: (cursor: Cursor) => Promise<Result>): Promise<Result> {
    const key = `${name.server_id} ${name.stream}`;
    const result = (work_under_way.get(key) ?? Promise.resolve()).then(async () => {
      const cursor = cursors.get(key) ?? (await readCursor(name));
      // After a failure only the database knows whether the chunk was added.
      cursors.delete(key);
      const done = await work(cursor);
      cursors.set(key, cursor);
      return done;
    });
    const settled = result.then(
      () => {},
      () => {},
    );
    work_under_way.set(key, settled);
    try {
      return await result;
    } finally {
      if (work_under_way.get(key) === settled) work_under_way.delete(key);
    }
  }

  /** Does work under the lock of a log, and repeats it if another process has added to the log meanwhile. */
  async function retryWithCursorLock<Result>(
    name: LogName,
    work: (cursor: Cursor) => Promise<Result>,
  ): Promise<Result> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await withCursorLock(name, work);
      } catch (cause) {
        if (!(cause instanceof LogMoved) || attempt === ATTEMPTS_MAX) throw cause;
      }
    }
  }

  async function readCursor(name: LogName): Promise<Cursor> {
    const last = await store.selectLastChunk(database.queries, name);
    if (!last) return { resume_point: null, next_line: 0, total_bytes: 0 };
    const { resume_point, first_line, line_count, total_bytes, ts, content } = last;
    // The time of an emptied chunk may be the latest possible one.
    return { resume_point, next_line: first_line + line_count, total_bytes, ...(content.length > 0 && { ts }) };
  }

  function timeNow({ ts: not_before }: Cursor, line_count: number): TimedLines[] {
    return timeLines({ line_count, lines_until: [] }, [], { now: clock.now(), not_before });
  }

  async function add(
    name: LogName,
    cursor: Cursor,
    { content, line_count, timed = timeNow(cursor, line_count), resume_point = cursor.resume_point }: Addition,
  ): Promise<void> {
    const total_bytes = cursor.total_bytes + content.length + CHUNK_OVERHEAD_BYTES;
    const times = packTimes(timed);
    const chunk = {
      ...name,
      first_line: cursor.next_line,
      line_count,
      ...times,
      resume_point,
      total_bytes,
      content,
    };
    if (!(await store.insertChunk(database.queries, chunk))) throw new LogMoved();
    Object.assign(cursor, { resume_point, next_line: cursor.next_line + line_count, total_bytes, ts: times.ts });
    if (total_bytes > LOG_BYTES_MAX) await deleteBeyondLimit(name, total_bytes - LOG_BYTES_MAX);
  }

  async function deleteBeyondLimit(name: LogName, total_bytes: number): Promise<void> {
    const batch = { total_bytes, limit: TRIMMED_AT_ONCE_MAX };
    while ((await store.deleteChunksUpTo(database.queries, name, batch)) === TRIMMED_AT_ONCE_MAX);
  }

  async function movePiece(name: LogName, cursor: Cursor, read: ReadOutput, has_ended: boolean): Promise<Collected> {
    const is_space_low = !has_ended && (await isSpaceLow());
    const piece = await read({
      from: cursor.resume_point ?? undefined,
      bytes_max: is_space_low ? 0 : PIECE_BYTES_MAX,
      backlog_bytes_max: is_space_low ? PIECE_BYTES_MAX : BACKLOG_BYTES_MAX,
    });
    const parts = piece.written ?? [];
    const times = { now: clock.now(), not_before: cursor.ts };
    if (piece.skipped_bytes > 0) {
      const why = is_space_low
        ? "the service's disk is nearly full"
        : 'the server writes faster than its log can be kept';
      const line = `[muster] at least ${piece.skipped_bytes} bytes dropped: ${why}\n`;
      const timed = timeLines({ line_count: 1, lines_until: [1] }, parts, times);
      const resume_point = piece.resumeAfter(0);
      await add(name, cursor, { content: Buffer.from(line), line_count: 1, timed, resume_point });
    }
    const is_last = has_ended && !piece.has_more;
    const marks = parts.map(({ until }) => until);
    const taken = takeLines(piece.bytes, LINE_BYTES_MAX, is_last, marks);
    const { content, line_count, consumed_bytes } = taken;
    const timed = timeLines(taken, parts, times);
    const resume_point = piece.resumeAfter(consumed_bytes);
    if (line_count > 0) await add(name, cursor, { content, line_count, timed, resume_point });
    return { bytes: consumed_bytes, has_more: line_count > 0 && piece.has_more };
  }

  return {
    /** Moves the next piece of a server's output into the database. */
    collect: (name: LogName, read: ReadOutput, has_ended: boolean): Promise<Collected> =>
      retryWithCursorLock(name, (cursor) => movePiece(name, cursor, read, has_ended)),
    /** Adds a line that the service writes. */
    addLine: (name: LogName, text: string): Promise<void> =>
      retryWithCursorLock(name, (cursor) => add(name, cursor, { content: Buffer.from(`${text}\n`), line_count: 1 })),
    /** Adds a line that the service writes at the end of the log. Repeating it adds nothing. */
    addLastLine: (name: LogName, text: string): Promise<void> =>
      retryWithCursorLock(name, async (cursor) => {
        const content = Buffer.from(`${text}\n`);
        const last = await store.selectLastChunk(database.queries, name);
        if (last && content.equals(last.content)) return;
        await add(name, cursor, { content, line_count: 1 });
      }),
    /** Forgets where logs end, because another process may have added to them. */
    forgetCursors(): void {
      cursors.clear();
    },
    /** Returns the lines from a number on, as many as fit into an answer. Skips lines that are no longer kept. */
    async linesFrom(name: LogName, line: number): Promise<LogLines> {
      const key = `${name.server_id} ${name.stream}`;
      const recent = recent_chunks.get(key);
      // A follower of a fast log reads many pages of one chunk, which has thousands of lines.
      if (recent && line >= recent.first_line && line + LINES_PER_ANSWER_MAX <= recent.first_line + recent.line_count) {
        const lines = linesOf(recent, { skipped: line - recent.first_line, count: LINES_PER_ANSWER_MAX });
        return { lines, next_line: line + lines.length };
      }
      const chunks = await store.selectChunksFrom(database.queries, name, {
        line,
        lines_wanted: LINES_PER_ANSWER_MAX,
      });
      const lines: LogLines['lines'] = [];
      let next_line = line;
      for (const chunk of chunks) {
        if (lines.length === LINES_PER_ANSWER_MAX) break;
        const { first_line, line_count } = chunk;
        const skipped = Math.max(line - first_line, 0);
        const fitting = linesOf(chunk, { skipped, count: LINES_PER_ANSWER_MAX - lines.length });
        lines.push(...fitting);
        // After a gap, continues with the first line that is kept.
        next_line = first_line + (fitting.length > 0 ? skipped + fitting.length : line_count);
      }
      const last = chunks.at(-1);
      if (last && last.content.length > 0 && last.line_count > LINES_PER_ANSWER_MAX) recent_chunks.set(key, last);
      return { lines, next_line };
    },
    /** Returns the last lines. */
    async lastLines(name: LogName): Promise<LogLines> {
      const chunks = await store.selectLastChunks(database.queries, name, LINES_PER_ANSWER_MAX);
      const lines = chunks.flatMap((chunk) => {
        const skipped = Math.max(chunk.line_count - LINES_PER_ANSWER_MAX, 0);
        return linesOf(chunk, { skipped, count: LINES_PER_ANSWER_MAX });
      });
      const last = chunks.at(-1);
      return { lines: lines.slice(-LINES_PER_ANSWER_MAX), next_line: last ? last.first_line + last.line_count : 0 };
    },
    /** Deletes a batch of old chunks. Returns how many; more may remain unless it is 0. */
    async deleteOld(): Promise<number> {
      const before = after(clock.now(), -LOGS_KEPT_FOR_MS);
      const removed = await store.deleteChunksBefore(database.queries, before, DELETED_AT_ONCE_MAX);
      if (removed > 0) recent_chunks.clear();
      return removed;
    },
  };
}

/** Returns `count` lines of a stored chunk with their times, after the first `skipped`. */
function linesOf(chunk: LogChunkRow, range: { skipped: number; count: number }): LogLines['lines'] {
  const times = timesOf(chunk, range);
  const first = chunk.first_line + range.skipped;
  return selectLines(chunk.content, range).map((bytes, index) => ({
    number: first + index,
    bytes,
    ts: times[index] ?? chunk.ts,
  }));
}
