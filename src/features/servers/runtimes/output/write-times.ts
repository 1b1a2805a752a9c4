import { type Stats, statSync } from 'node:fs';
import type { WrittenPart } from '../runtime.ts';

/**
 * Interval at which files that grow are observed. Times of lines are exact to this interval; after a pause, to the interval
 * of readings.
 */
const OBSERVE_EVERY_MS = 25;
/** Files to observe at a time; others take turns. */
const FILES_AT_ONCE_MAX = 64;
/** A file without growth or without a reading for this long is not observed between readings. */
const QUIET_AFTER_MS = 1_000;
/** Sizes to keep of a file. Beyond that, the newest replaces the one before. */
const SIZES_MAX = 256;
/** Sizes to keep of a copy, whose writer may be far ahead of the readings. */
const SIZES_OF_COPY_MAX = 16_384;
/** Lines of a copy that were written within this time have the time of the last one. */
const COPY_MERGE_MS = 25;

type FileState = Pick<Stats, 'size' | 'mtimeMs'>;

/** A size that a file had, and when it reached it. */
export interface ReachedSize {
  size: number;
  at_ms: number;
}

interface Growth {
  /** The sizes that the file had, ascending, and when it reached them. */
  sizes: ReachedSize[];
  /** Whether the file is a copy, so that its sizes come from its writer. */
  is_copy: boolean;
  grew_at: number;
  read_at: number;
}

/** The times at which files of output were written, as near as their sizes and times of change tell. */
export interface WriteTimes {
  /** Records the state of a file that is being read from a position. */
  noteRead(file: string, from: number, state: FileState): void;
  /** Records when the original of a file that is a copy reached a size. Sizes that are known already have no effect. */
  noteReached(file: string, reached: ReachedSize): void;
  /** Returns when the parts of a piece were written: `length` bytes from `start`. */
  partsOf(file: string, piece: { start: number; length: number }): WrittenPart[];
  forget(file: string): void;
}

/** Creates the times of files. While a file grows, it is observed between readings too. */
export function createWriteTimes(): WriteTimes {
  const files = new Map<string, Growth>();
  let timer: ReturnType<typeof setInterval> | undefined;

  function observeGrowing(): void {
    const now = performance.now();
    let observed = 0;
    let growing = 0;
    for (const [file, growth] of [...files]) {
      if (now - growth.grew_at > QUIET_AFTER_MS || now - growth.read_at > QUIET_AFTER_MS) continue;
      growing += 1;
      if (observed >= FILES_AT_ONCE_MAX) continue;
      observed += 1;
      const state = readState(file);
      if (state) recordSize(growth, state);
      // Behind the others, which are observed first the next time.
      files.delete(file);
      files.set(file, growth);
    }
    if (growing > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  function growthOf(file: string): Growth {
    const growth = files.get(file) ?? { sizes: [], is_copy: false, grew_at: Number.NEGATIVE_INFINITY, read_at: 0 };
    files.set(file, growth);
    return growth;
  }

  return {
    noteRead(file, from, state) {
      const growth = growthOf(file);
      growth.read_at = performance.now();
      if (!growth.is_copy && recordSize(growth, state) && !timer)
        timer = setInterval(observeGrowing, OBSERVE_EVERY_MS).unref();
      const first_unread = growth.sizes.findIndex(({ size }) => size > from);
      growth.sizes.splice(0, first_unread < 0 ? growth.sizes.length - 1 : first_unread);
    },
    noteReached(file, { size, at_ms }) {
      const growth = growthOf(file);
      if (!growth.is_copy) Object.assign(growth, { is_copy: true, sizes: [] });
      const last = growth.sizes.at(-1);
      if (last && size <= last.size) return;
      const before = growth.sizes.at(-2);
      const is_merged = last && before && at_ms - before.at_ms < COPY_MERGE_MS;
      if (is_merged || growth.sizes.length === SIZES_OF_COPY_MAX) growth.sizes.pop();
      growth.sizes.push({ size, at_ms: Math.min(Math.max(at_ms, last?.at_ms ?? 0), Date.now()) });
    },
    partsOf(file, { start, length }) {
      const now = Date.now();
      const parts: WrittenPart[] = [];
      for (const { size, at_ms } of files.get(file)?.sizes ?? []) {
        if (size <= start) continue;
        parts.push({ until: Math.min(size - start, length), age_ms: Math.max(now - at_ms, 0) });
        if (size - start >= length) break;
      }
      return parts;
    },
    forget: (file) => void files.delete(file),
  };
}

/** Records the size of a file. Returns whether the file has grown. */
function recordSize(growth: Growth, { size, mtimeMs }: FileState): boolean {
  const last = growth.sizes.at(-1);
  if (size === last?.size) return false;
  // The server truncated the file.
  if (last && size < last.size) growth.sizes.length = 0;
  // A server can change the time of its file, so the time is not trusted to lie between two observations.
  const at_ms = Math.min(Math.max(mtimeMs, last?.at_ms ?? 0), Date.now());
  if (growth.sizes.length === SIZES_MAX) growth.sizes.pop();
  growth.sizes.push({ size, at_ms });
  growth.grew_at = performance.now();
  return true;
}

function readState(file: string): FileState | undefined {
  try {
    return statSync(file, { throwIfNoEntry: false });
  } catch {
    // The next reading reports it.
    return undefined;
  }
}
