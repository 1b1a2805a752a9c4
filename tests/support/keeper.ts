import { chmodSync, existsSync, mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { DatabaseAddress } from '../../src/platform/database/database.ts';

/** CI sets it to run on a server instead of the embedded PostgreSQL. */
export const TEST_DATABASE_URL = process.env.MUSTER_TEST_DATABASE_URL;

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

/** The PostgreSQL of a run. */
export interface TestServer {
  /** The address of the database from which statements create and drop others. */
  admin: DatabaseAddress;
  /** The name of a migrated database without rows, to create others from. Nothing connects to it. */
  template: string;
  /** The name of a database without tables, to create others from. */
  empty: string;
}

/** Returns the address of another database on the same server. */
export function databaseOn(address: DatabaseAddress, database: string): DatabaseAddress {
  if (!('url' in address)) return { ...address, database };
  const url = new URL(address.url);
  url.pathname = `/${database}`;
  return { url: url.href };
}

/** How the names of the databases of a process of tests begin. */
export const databasePrefix = (pid: number): string => `muster_test_${pid}_`;

/** A process that outlives the tests: it runs their PostgreSQL, and cleans up after an interrupted run. */
interface Keeper extends AsyncDisposable {
  /** Returns the PostgreSQL of the run, which starts with the first call. */
  openServer(): Promise<TestServer>;
}

let keeper: Keeper | undefined;

/**
 * Starts the keeper of this run as a process of its own, once. All that the run writes, except its databases, lies in
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
  let server: Promise<TestServer> | undefined;

  async function openServer(): Promise<TestServer> {
    child.stdin.write('database\n');
    await child.stdin.flush();
    child.ref();
    const { value } = await child.stdout.getReader().read();
    child.unref();
    if (value === undefined) throw new Error('the PostgreSQL of the tests did not start');
    return JSON.parse(new TextDecoder().decode(value));
  }

  return {
    openServer() {
      server ??= openServer();
      return server;
    },
    async [Symbol.asyncDispose]() {
      await child.stdin.end();
      await child.exited;
    },
  };
}
