import { statfs } from 'node:fs/promises';
import { ServiceError } from '../errors.ts';
import type { Events } from '../events.ts';
import { type Finding, toFinding } from '../findings.ts';
import { type Loop, startLoop } from '../loop.ts';
import { hasErrorCode } from './system-errors.ts';

const CHECK_EVERY_MS = 10_000;
/** Bytes that a writer may write between two checks. Several writers together may use some of the reserve. */
const CHECK_EVERY_BYTES = 16 * 1024 ** 2;
/** Room for a few files of the write-ahead log, without which PostgreSQL stops. */
const DATABASE_NEEDS_BYTES = 16 * 1024 ** 2;
/** Long, because an operator has to free space. */
const RETRY_AFTER_MS = 30_000;

const RESERVE_USED =
  'less than MUSTER_DISK_RESERVE_MB is free on the disk, so uploads and builds are refused and server logs dropped';

/** Checks the free space of a file system, which keeps a reserve for the database. */
export interface DiskSpace {
  /** Throws STORAGE_FULL if storing that many bytes would leave less than the reserve. */
  assertRoom(bytes: number): Promise<void>;
  /** Returns whether less than the reserve is free. */
  isLow(): Promise<boolean>;
  /** Returns a function to call before each write with its length. It throws STORAGE_FULL when the reserve is reached. */
  createMeter(): (bytes: number) => Promise<void>;
  /** Returns why a database on this file system cannot work; undefined if it can. */
  check(): Promise<Finding | undefined>;
  /** Returns what is refused because less than the reserve is free; undefined if more is. */
  warn(): Promise<Finding | undefined>;
}

/** For directories without a reserve. */
export const UNLIMITED_SPACE: DiskSpace = {
  assertRoom: async () => {},
  isLow: async () => false,
  createMeter: () => async () => {},
  check: async () => undefined,
  warn: async () => undefined,
};

interface DiskSpaceOptions {
  /** Any directory of the file system. */
  directory: string;
  /** Bytes to keep free. */
  reserve_bytes: number;
  events: Events;
}

/** Creates the checks for the file system of a directory. */
export function createDiskSpace({ directory, reserve_bytes, events }: DiskSpaceOptions) {
  async function assertRoom(bytes: number): Promise<void> {
    if ((await readFreeBytes(directory)) - bytes >= reserve_bytes) return;
    throw storageFull();
  }
  const isLow = async () => (await readFreeBytes(directory)) < reserve_bytes;
  const space: DiskSpace = {
    assertRoom,
    isLow,
    createMeter() {
      let unchecked_bytes = CHECK_EVERY_BYTES;
      return async (bytes) => {
        unchecked_bytes += bytes;
        if (unchecked_bytes < CHECK_EVERY_BYTES) return;
        await assertRoom(bytes);
        unchecked_bytes = 0;
      };
    },
    async check() {
      const free_bytes = await readFreeBytes(directory);
      if (free_bytes >= DATABASE_NEEDS_BYTES) return undefined;
      return toFinding('DISK_FULL', `the disk of the data directory is full (${free_bytes} bytes are free)`);
    },
    async warn() {
      if (!(await isLow())) return undefined;
      return toFinding('DISK_RESERVE_USED', RESERVE_USED);
    },
  };

  /** Emits an event when less than the reserve is free, and another when it is free again. */
  function startWatching(signal: AbortSignal): Loop {
    let was_low = false;
    return startLoop({
      name: 'disk-space',
      every_ms: CHECK_EVERY_MS,
      signal,
      events,
      async step() {
        const free_bytes = await readFreeBytes(directory);
        const is_low = free_bytes < reserve_bytes;
        if (is_low !== was_low) {
          events.emit({ event: is_low ? 'disk_space_low' : 'disk_space_regained', free_bytes, reserve_bytes });
        }
        was_low = is_low;
        return 0;
      },
    });
  }

  return { ...space, startWatching };
}

/** Returns the error of a write for which there is no space. */
export function storageFull(cause?: unknown): ServiceError<'STORAGE_FULL'> {
  return new ServiceError('STORAGE_FULL', {}, { cause, retry_after_ms: RETRY_AFTER_MS });
}

/** Returns whether a write failed because the disk, or what the reserve leaves of it, is full. */
export function isShortOfSpace(error: unknown): boolean {
  if (error instanceof ServiceError && error.code === 'STORAGE_FULL') return true;
  return hasErrorCode(error, 'ENOSPC') || hasErrorCode(error, 'EDQUOT');
}

/** Reads the bytes that users other than root may still write. */
async function readFreeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
