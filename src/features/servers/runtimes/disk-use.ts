import { chmodSync, closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, type Stats } from 'node:fs';
import { open, stat, statfs } from 'node:fs/promises';
import { pace } from '../../../platform/pacing.ts';
import { readNames } from '../../../platform/system/libc.ts';
import { listOpenFiles } from '../../../platform/system/processes.ts';
import { hasErrorCode } from '../../../platform/system/system-errors.ts';
import type { DiskUse } from './runtime.ts';

const BLOCK_BYTES = 512;
/** What the kernel adds to the name of an open file that no folder has any more. */
const DELETED = ' (deleted)';
/** Folders inside of each other to descend into. Each takes a descriptor meanwhile. */
export const DEPTH_MAX = 256;
/** Open files of all processes of a server, and deleted files that they have mapped. Each has to be looked at. */
export const OPEN_FILES_MAX = 65_536;
/** Length of the lists of what all processes of a server have mapped. The kernel writes some 30 MB a second. */
const MAPPINGS_LENGTH_MAX = 16 * 1024 ** 2;
/** Opens a folder only to name it, so it need not be readable. */
const O_PATH = 0o10000000;
const FOLDER = constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** The rights of an owner to list a folder and to reach what is in it. */
const LISTABLE = 0o500;

/** What to measure. */
interface MeasureOptions {
  folder: string;
  /** Processes that may have deleted files open. */
  pids: readonly number[];
  /**
   * Returns whether a deleted file with this path was in the folder. Left out for a container, whose paths say nothing: then
   * all deleted files count that are not in memory.
   */
  isInside?: (path: string) => boolean;
}

/**
 * Measures what a server has on the disk: everything below its folder, and files that it deleted but still has open or
 * mapped. Follows no links. Stops early above the limit, so that a server with millions of files takes no longer than one
 * at its limit. Files that disappear meanwhile are left out.
 */
export async function measureDisk({ folder, pids, isInside }: MeasureOptions, limit: DiskUse): Promise<DiskUse> {
  const used: DiskUse = { bytes: 0, files: 0 };
  let open_files = 0;
  let mappings_length = 0;

  function add({ blocks }: Stats): void {
    used.bytes += blocks * BLOCK_BYTES;
    used.files += 1;
  }

  /**
   * Counts what is in an open folder. A path that begins at a descriptor is never too long, and a name that is not UTF-8
   * exists only as bytes.
   */
  async function addFolder(descriptor: number, depth: number): Promise<void> {
    const folder = Buffer.from(`/proc/self/fd/${descriptor}/`);
    for (let names = readNames(descriptor); names.length > 0; names = readNames(descriptor)) {
      for (const name of names) {
        await pace();
        const path = Buffer.concat([folder, name]);
        const found = lstatSync(path, { throwIfNoEntry: false });
        if (!found) continue;
        add(found);
        if (found.isDirectory()) await descend(path, depth);
        if (isAbove(used, limit)) return;
      }
    }
  }

  /** Counts what is in a folder. A server that keeps its folders from being counted is above the limit. */
  async function descend(path: Buffer | string, depth: number): Promise<void> {
    if (depth === DEPTH_MAX) {
      used.is_uncountable = true;
      return;
    }
    let descriptor: number | undefined;
    try {
      descriptor = openFolder(path);
      await addFolder(descriptor, depth + 1);
    } catch (error) {
      if (hasErrorCode(error, 'EACCES') || hasErrorCode(error, 'EPERM')) used.is_uncountable = true;
      // Otherwise it was removed or replaced meanwhile, or never made.
      else if (!hasErrorCode(error, 'ENOENT') && !hasErrorCode(error, 'ENOTDIR')) throw error;
    } finally {
      if (descriptor !== undefined) closeSync(descriptor);
    }
  }

  /** Lists the deleted files that a process has open, as the kernel still names them. */
  async function listDeletedOpen(pid: number): Promise<string[]> {
    const found: string[] = [];
    for (const file of listOpenFiles(pid)) {
      await pace();
      open_files += 1;
      if (open_files > OPEN_FILES_MAX) {
        used.is_uncountable = true;
        return [];
      }
      if (isDeletedInside(readTarget(file), isInside)) found.push(file);
    }
    return found;
  }

  /**
   * Lists the deleted files that a process has mapped, each once, however often it is mapped. The kernel tells only root how
   * large they are.
   */
  async function listDeletedMapped(pid: number): Promise<string[]> {
    const found = new Map<string, string>();
    for await (const line of readMappings(pid)) {
      await pace();
      mappings_length += line.length;
      const start = line.indexOf('/');
      if (start > 0 && isDeletedInside(line.slice(start), isInside)) {
        const [range = '', , , device = '', inode = ''] = line.split(' ', 5);
        const file = `${device} ${inode}`;
        if (!found.has(file)) open_files += 1;
        found.set(file, `/proc/${pid}/map_files/${range}`);
      }
      if (mappings_length > MAPPINGS_LENGTH_MAX || open_files > OPEN_FILES_MAX) {
        used.is_uncountable = true;
        return [];
      }
    }
    return [...found.values()];
  }

  await descend(folder, 0);
  const counted = new Set<string>();
  for (const pid of pids) {
    if (isAbove(used, limit)) return used;
    for (const file of [...(await listDeletedOpen(pid)), ...(await listDeletedMapped(pid))]) {
      const found = await stat(file).catch(() => undefined);
      if (!found || found.nlink > 0 || counted.has(`${found.dev}:${found.ino}`)) continue;
      counted.add(`${found.dev}:${found.ino}`);
      if (isInside || !(await isInMemory(file))) add(found);
    }
  }
  return used;
}

/** The kernel's numbers of file systems in memory: tmpfs, ramfs and hugetlbfs. */
const MEMORY_FILE_SYSTEMS = [0x01021994, 0x858458f6, 0x958458f6];

/** Returns whether a file is in memory, which has a limit of its own, or is gone. */
async function isInMemory(file: string): Promise<boolean> {
  const system = await statfs(file).catch(() => undefined);
  return !system || MEMORY_FILE_SYSTEMS.includes(system.type);
}

/** Opens a folder to list it. A service that is not root gives itself the right, as the owner of what its servers make. */
function openFolder(path: Buffer | string): number {
  const named = openSync(path, O_PATH | FOLDER);
  try {
    const { mode } = fstatSync(named);
    if ((mode & LISTABLE) !== LISTABLE && process.geteuid?.() !== 0) {
      chmodSync(`/proc/self/fd/${named}`, (mode & 0o7777) | LISTABLE);
    }
    return openSync(`/proc/self/fd/${named}`, constants.O_RDONLY | constants.O_DIRECTORY);
  } finally {
    closeSync(named);
  }
}

type IsInside = MeasureOptions['isInside'];

/** Yields the lines that describe what a process has mapped. Stops early if the process ends. */
async function* readMappings(pid: number): AsyncGenerator<string> {
  try {
    // Without this, a file whose reader stops early is read to its end in the background, and stays open until then.
    await using file = await open(`/proc/${pid}/maps`);
    yield* file.readLines();
  } catch {
    // The process has ended.
  }
}

/**
 * Returns whether a path is that of a deleted file of the server. A path that is too long for the kernel to return
 * (`undefined`) counts as such a file.
 */
function isDeletedInside(path: string | undefined, isInside: IsInside): boolean {
  return path === undefined || (path.endsWith(DELETED) && (isInside?.(path.slice(0, -DELETED.length)) ?? true));
}

/** Returns the path of an open file; undefined if it is too long, and an empty text if the file was closed meanwhile. */
function readTarget(file: string): string | undefined {
  try {
    return readlinkSync(file);
  } catch (error) {
    return hasErrorCode(error, 'ENAMETOOLONG') ? undefined : '';
  }
}

export function isAbove(used: DiskUse, limit: DiskUse): boolean {
  return used.is_uncountable === true || used.bytes > limit.bytes || used.files > limit.files;
}
