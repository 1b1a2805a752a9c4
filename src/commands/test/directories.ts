import { accessSync, constants, existsSync, mkdirSync, statfsSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { canBeEnteredByOthers } from '../../default-data-directory.ts';
import { StartError } from '../../platform/errors.ts';

const IS_ROOT = process.getuid?.() === 0;
/** Holds files in memory: a database has 600, which some disks take half a second to create. */
const MEMORY = '/dev/shm';
const MEMORY_FREE_BYTES_MIN = 2 * 1024 ** 3;
const TEMPORARY_DEFAULT = '/tmp';

/** Creates the data directory of a throwaway service. Throws StartError if its PostgreSQL could not enter it. */
export async function createDataDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-test-'));
  await chmod(directory, 0o711);
  if (!IS_ROOT || canBeEnteredByOthers(directory)) return directory;
  await rm(directory, { recursive: true });
  throw new StartError(
    `Other users cannot enter ${tmpdir()}, but PostgreSQL and game servers do not run as root: set TMPDIR to another directory.`,
  );
}

/** Removes all files of a throwaway service. */
export async function removeFiles(data_directory: string): Promise<void> {
  for (const path of [inMemory(data_directory), data_directory]) await rm(path, { recursive: true, force: true });
}

/**
 * Creates the directory for the database of a throwaway service: in memory if enough is free and TMPDIR names no other
 * directory. Its name follows from that of the data directory, so that a later call finds it.
 */
export function createDatabaseDirectory(data_directory: string): string {
  const in_memory = inMemory(data_directory);
  const is_chosen = existsSync(in_memory) || (tmpdir() === TEMPORARY_DEFAULT && freeMemory() >= MEMORY_FREE_BYTES_MIN);
  const directory = is_chosen ? in_memory : join(data_directory, 'postgres');
  mkdirSync(directory, { recursive: true, mode: 0o711 });
  return directory;
}

const inMemory = (data_directory: string) => join(MEMORY, basename(data_directory));

function freeMemory(): number {
  if (!existsSync(MEMORY)) return 0;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize;
}

/** Returns the first directory that can hold what throwaway services share; undefined if none can. */
export function chooseCacheDirectory(candidates: string[]): string | undefined {
  return candidates.find((directory) => {
    try {
      if (IS_ROOT && !canBeEnteredByOthers(closestExisting(directory))) return false;
      mkdirSync(directory, { recursive: true, mode: 0o711 });
      accessSync(directory, constants.W_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function closestExisting(directory: string): string {
  return existsSync(directory) ? directory : closestExisting(dirname(directory));
}
