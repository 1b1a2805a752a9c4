import { chmodSync, existsSync, mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { DatabaseAddress } from '../../src/platform/database/database.ts';

/** The machine's directory for temporary files, which the run replaces by its own. */
export const MACHINE_TMP = tmpdir();

/**
 * Files in memory. A database, which is 500 files, takes a tenth of the processor time there that it takes on a disk.
 */
const MEMORY = '/dev/shm';
const MEMORY_FREE_BYTES_MIN = 4 * 1024 ** 3;

/** Returns the directory of a run's PostgreSQL: in memory if that is large enough, else in the run's directory. */
export function databaseDirectoryOf(directory: string): string {
  const { bavail, bsize } = existsSync(MEMORY) ? statfsSync(MEMORY) : { bavail: 0, bsize: 0 };
  return bavail * bsize >= MEMORY_FREE_BYTES_MIN ? join(MEMORY, basename(directory)) : join(directory, 'shared');
}

/** A process that outlives the tests: it runs their PostgreSQL, and cleans up after an interrupted run. */
interface Keeper extends AsyncDisposable {
  /** A database on the PostgreSQL of the run, which starts with the first call. */
  addressOf(database: string): Promise<DatabaseAddress>;
}

let keeper: Keeper | undefined;

/**
 * Starts the keeper of this run as a process of its own, once. All that the run writes, but for its databases, lies in
 * one temporary directory from then on. Started before the first test: Bun ends each process that was spawned while
 * tests ran when one of them times out, and the PostgreSQL of the files after it must stay.
 */
export function startKeeper(): Keeper {
  keeper ??= spawnKeeper();
  return keeper;
}

/** Ends the keeper of this run, if there is one, and removes all files of the run. */
export async function stopKeeper(): Promise<void> {
  await keeper?.[Symbol.asyncDispose]();
  keeper = undefined;
}

function spawnKeeper(): Keeper {
  const directory = mkdtempSync(join(MACHINE_TMP, 'muster-run-'));
  chmodSync(directory, 0o711);
  process.env.TMPDIR = directory;
  const command = [process.execPath, join(import.meta.dir, 'keeper-process.ts'), directory, MACHINE_TMP];
  const child = Bun.spawn(command, { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' });
  // The keeper does not keep the run alive.
  child.unref();
  let connection: Promise<object> | undefined;

  async function openDatabase(): Promise<object> {
    child.stdin.write('database\n');
    await child.stdin.flush();
    child.ref();
    const { value } = await child.stdout.getReader().read();
    child.unref();
    if (value === undefined) throw new Error('the PostgreSQL of the tests did not start');
    return JSON.parse(new TextDecoder().decode(value));
  }

  return {
    async addressOf(database) {
      connection ??= openDatabase();
      return { ...(await connection), database } as DatabaseAddress;
    },
    async [Symbol.asyncDispose]() {
      await child.stdin.end();
      await child.exited;
    },
  };
}
