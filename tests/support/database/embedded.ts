import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import {
  type EmbeddedOptions,
  type EmbeddedPostgres,
  openEmbeddedPostgres,
} from '../../../src/platform/database/embedded.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { signalProcess } from '../../../src/platform/system/processes.ts';
import { findProcessesOf } from '../processes.ts';
import { makeDataDirectory } from '../service.ts';
import { waitFor } from '../wait.ts';
import { sharedFiles } from './postgres-cluster.ts';

type OpenOptions = Partial<Omit<EmbeddedOptions, 'programs_directory' | 'events'>>;

/** A directory for an embedded PostgreSQL. Disposing of it removes everything. */
export interface PostgresDirectory extends AsyncDisposable {
  directory: string;
  cluster: string;
  events: ServiceEvent[];
  open(options?: OpenOptions): Promise<EmbeddedPostgres>;
  /** Opens it from a separate process that is then killed, so PostgreSQL runs alone. Returns its process id. */
  openInKilledProcess(options?: { is_durable?: boolean }): Promise<number>;
}

export async function makePostgresDirectory(): Promise<PostgresDirectory> {
  const directory = await makeDataDirectory();
  const programs_directory = await sharedFiles();
  const events: ServiceEvent[] = [];
  return {
    directory,
    cluster: join(directory, 'cluster'),
    events,
    open: (options = {}) =>
      openEmbeddedPostgres({
        directory,
        programs_directory,
        is_durable: false,
        events: { emit: (event) => events.push(event) },
        ...options,
      }),
    async openInKilledProcess({ is_durable = false } = {}) {
      const command = [
        process.execPath,
        join(import.meta.dir, 'embedded-opener.ts'),
        directory,
        programs_directory,
        String(is_durable),
      ];
      const opener = Bun.spawn(command, { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' });
      const { value } = await opener.stdout.getReader().read();
      opener.kill('SIGKILL');
      await opener.exited;
      return Number(new TextDecoder().decode(value));
    },
    async [Symbol.asyncDispose]() {
      // An immediate shutdown, unlike a kill, releases PostgreSQL's shared memory.
      for (const pid of findProcessesOf(directory)) signalProcess(pid, 'SIGQUIT');
      await waitFor(() => findProcessesOf(directory).length === 0, 'PostgreSQL to end');
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Returns the address of the PostgreSQL in a directory, whichever process started it. */
export function connectionOf({ directory }: Pick<PostgresDirectory, 'directory'>): EmbeddedPostgres['connection'] {
  return { path: join(directory, 'socket/.s.PGSQL.5432'), user: 'muster', database: 'postgres' };
}

/** Runs statements in order over a connection of their own, and returns the rows of the last. */
export async function query(
  { connection }: Pick<EmbeddedPostgres, 'connection'>,
  ...statements: string[]
): Promise<Record<string, unknown>[]> {
  await using database = openDatabase(connection, 1);
  let rows: Record<string, unknown>[] = [];
  for (const statement of statements) rows = [...(await database.queries.execute(sql.raw(statement)))];
  return rows;
}
