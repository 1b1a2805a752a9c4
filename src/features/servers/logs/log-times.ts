import type { WrittenPart } from '../runtimes/runtime.ts';
import type { LogChunkRow } from '../tables.ts';

const MS_BEFORE_MAX = 2 ** 31 - 1;

/** Consecutive lines of a chunk that were written at one time. */
export interface TimedLines {
  line_count: number;
  ts: Date;
}

/**
 * Returns when the lines of a piece were written. `lines_until` has, for each part, the number of lines that end in it
 * or before it. A line is not later than `now`, when the piece was read, and never earlier than `not_before`, when the
 * line before it was written, even if this clock is behind that: the lines of a log are sorted by their times.
 */
export function timeLines(
  { line_count, lines_until }: { line_count: number; lines_until: number[] },
  parts: readonly WrittenPart[],
  { now, not_before }: { now: Date; not_before: Date | undefined },
): TimedLines[] {
  const timed: TimedLines[] = [];
  let ts_ms = not_before?.getTime() ?? 0;
  let timed_count = 0;
  for (const [index, { age_ms }] of [...parts, { age_ms: 0 }].entries()) {
    const count = (lines_until[index] ?? line_count) - timed_count;
    if (count === 0) continue;
    ts_ms = Math.max(Math.min(now.getTime() - Math.round(age_ms), now.getTime()), ts_ms);
    const last = timed.at(-1);
    if (last?.ts.getTime() === ts_ms) last.line_count += count;
    else timed.push({ line_count: count, ts: new Date(ts_ms) });
    timed_count += count;
  }
  return timed;
}

/** Returns the columns for the times of a chunk: the time of its last lines, and the distances of earlier ones to it. */
export function packTimes(timed: TimedLines[]): Pick<LogChunkRow, 'ts' | 'earlier_lines'> {
  const last = timed.at(-1);
  if (!last) throw new Error('a chunk has lines');
  const earlier_lines = timed
    .slice(0, -1)
    .flatMap(({ line_count, ts }) => [line_count, Math.min(last.ts.getTime() - ts.getTime(), MS_BEFORE_MAX)]);
  return { ts: last.ts, earlier_lines: earlier_lines.length > 0 ? earlier_lines : null };
}

/** Returns the times of the lines of a stored chunk. */
export function unpackTimes({
  line_count,
  ts,
  earlier_lines,
}: Pick<LogChunkRow, 'line_count' | 'ts' | 'earlier_lines'>): TimedLines[] {
  const timed: TimedLines[] = [];
  let left = line_count;
  for (let index = 0; index < (earlier_lines?.length ?? 0); index += 2) {
    const [count = 0, ms_before = 0] = earlier_lines?.slice(index, index + 2) ?? [];
    timed.push({ line_count: count, ts: new Date(ts.getTime() - ms_before) });
    left -= count;
  }
  return [...timed, { line_count: left, ts }];
}

/** Returns the times of `count` lines of a stored chunk, after the first `skipped`. */
export function timesOf(
  chunk: Parameters<typeof unpackTimes>[0],
  { skipped, count }: { skipped: number; count: number },
): Date[] {
  const times: Date[] = [];
  let before = 0;
  for (const { line_count, ts } of unpackTimes(chunk)) {
    const until = before + line_count;
    for (let line = Math.max(before, skipped); line < until && times.length < count; line += 1) times.push(ts);
    before = until;
  }
  return times;
}

/** Returns how many lines of a stored chunk were written before a given time. */
export function countLinesBefore(chunk: Parameters<typeof unpackTimes>[0], moment: Date): number {
  return unpackTimes(chunk)
    .filter(({ ts }) => ts < moment)
    .reduce((count, { line_count }) => count + line_count, 0);
}
