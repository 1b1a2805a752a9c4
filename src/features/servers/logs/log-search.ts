import type { Database } from '../../../platform/database/database.ts';
import { pace } from '../../../platform/pacing.ts';
import type { LogChunkRow } from '../tables.ts';
import { findLines } from './log-lines.ts';
import type { LogName } from './log-store.ts';
import * as store from './log-store.ts';
import { timesOf } from './log-times.ts';
import { LINES_PER_ANSWER_MAX, type LogLines } from './logs.ts';

/** Limits of a page, and the maximum number of pages: together all that a log keeps, unless its chunks are very small. */
const PAGE: store.PageLimits = { chunks_max: 256, bytes_max: 2 * 1024 ** 2 };
const PAGES_MAX = 64;
/**
 * After finding nothing in at most this much, a search keeps its position, so that no watcher is woken by an answer without
 * lines. The next change reads these chunks again.
 */
const READ_AGAIN_MAX: store.PageLimits = { chunks_max: 256, bytes_max: 256 * 1024 };

/** The lines to find: those that contain a text. */
export interface LogSearch {
  text: string;
  is_case_sensitive: boolean;
}

/** Matching lines, oldest first. Those before `from_line` are not searched yet; the log ends before `end_line`. */
export interface SearchedLines extends Pick<LogLines, 'lines'> {
  from_line: number;
  end_line: number;
}

/** Creates the search in the logs of servers. It looks through chunks one by one and lets other work run between them. */
export function createLogSearch({ queries }: Pick<Database, 'queries'>) {
  return {
    /** Returns the matching lines from a number on, as many as fit into an answer. */
    async from(name: LogName, line: number, search: LogSearch): Promise<LogLines> {
      const lines: LogLines['lines'] = [];
      let next_line = line;
      const read = { chunks: 0, bytes: 0 };
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const chunks = await store.selectPageFrom(queries, name, next_line, PAGE);
        const is_end = !chunks.some(({ first_line, line_count }) => first_line + line_count > next_line);
        if (is_end) break;
        for (const chunk of chunks) {
          const skipped = Math.max(next_line - chunk.first_line, 0);
          for (const [index, match] of findMatches(chunk, search)) {
            if (index < skipped) continue;
            if (lines.length === LINES_PER_ANSWER_MAX) return { lines, next_line };
            lines.push(match);
            next_line = chunk.first_line + index + 1;
          }
          next_line = Math.max(next_line, chunk.first_line + chunk.line_count);
          read.chunks += 1;
          read.bytes += chunk.content.length;
          await pace();
        }
      }
      const has_moved =
        lines.length > 0 || read.chunks > READ_AGAIN_MAX.chunks_max || read.bytes > READ_AGAIN_MAX.bytes_max;
      return { lines, next_line: has_moved ? next_line : line };
    },
    /**
     * Searches one page back from a line, or from the end. Returns the matching lines with the range that was searched, so
     * that a caller can go on before it and knows how far it is.
     */
    async searchBack(name: LogName, line: number | undefined, search: LogSearch): Promise<SearchedLines> {
      const end_line = await store.selectEnd(queries, name);
      const until_line = Math.min(line ?? end_line, end_line);
      const chunks = await store.selectPageBefore(queries, name, until_line, PAGE);
      const newest_first: LogLines['lines'] = [];
      let from_line = chunks.length === 0 ? 0 : until_line;
      for (const chunk of chunks) {
        const matches = [...findMatches(chunk, search).values()].filter(({ number }) => number < until_line).reverse();
        const fitting = matches.slice(0, LINES_PER_ANSWER_MAX - newest_first.length);
        newest_first.push(...fitting);
        if (fitting.length < matches.length) {
          from_line = fitting.at(-1)?.number ?? from_line;
          break;
        }
        from_line = chunk.first_line;
        await pace();
      }
      return { lines: newest_first.reverse(), from_line, end_line };
    },
    /** Returns the last matching lines. */
    async last(name: LogName, search: LogSearch): Promise<LogLines> {
      const next_line = await store.selectEnd(queries, name);
      const newest_first: LogLines['lines'] = [];
      let until_line = next_line;
      for (let page = 0; page < PAGES_MAX && newest_first.length < LINES_PER_ANSWER_MAX; page += 1) {
        const chunks = await store.selectPageBefore(queries, name, until_line, PAGE);
        if (chunks.length === 0) break;
        for (const chunk of chunks) {
          newest_first.push(...[...findMatches(chunk, search).values()].reverse().slice(0, LINES_PER_ANSWER_MAX));
          until_line = chunk.first_line;
          await pace();
        }
      }
      return { lines: newest_first.slice(0, LINES_PER_ANSWER_MAX).reverse(), next_line };
    },
  };
}

/** Returns the matching lines of a chunk, by their index in it. */
function findMatches(
  chunk: LogChunkRow,
  { text, is_case_sensitive }: LogSearch,
): Map<number, LogLines['lines'][number]> {
  const found = findLines(chunk.content, text, is_case_sensitive);
  if (found.size === 0) return new Map();
  const times = timesOf(chunk, { skipped: 0, count: chunk.line_count });
  const number = chunk.first_line;
  return new Map(
    [...found].map(([index, bytes]) => [index, { number: number + index, bytes, ts: times[index] ?? chunk.ts }]),
  );
}
