import { mkdirSync, rmSync } from 'node:fs';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../src/platform/database/embedded.ts';
import { signalProcess } from '../../src/platform/processes.ts';
import { sharedFiles } from './database.ts';
import { databaseDirectoryOf } from './keeper.ts';
import { findProcessesOf } from './processes.ts';

// The keeper of a run of tests. Its standard input ends with the run, however that ends; it asks for a database by a line.
const [directory = '', machine_tmp = ''] = process.argv.slice(2);
const CLEANING_ROUNDS_MAX = 100;
// Ctrl-C reaches every process of the terminal: the keeper has to clean up after the others.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

const database_directory = databaseDirectoryOf(directory);

let postgres: EmbeddedPostgres | undefined;
for await (const line of console) {
  if (line !== 'database') continue;
  mkdirSync(database_directory, { recursive: true, mode: 0o711 });
  postgres ??= await openEmbeddedPostgres({
    directory: database_directory,
    files_directory: await sharedFiles(machine_tmp),
    is_durable: false,
    events: { emit() {} },
  });
  console.log(JSON.stringify(postgres.connection));
}
await postgres?.[Symbol.asyncDispose]();
for (let round = 0; round < CLEANING_ROUNDS_MAX; round += 1) {
  const left = [directory, database_directory].flatMap(findProcessesOf);
  if (left.length === 0) break;
  for (const pid of left) signalProcess(pid, 'SIGKILL');
  await Bun.sleep(20);
}
for (const path of [directory, database_directory]) rmSync(path, { recursive: true, force: true });
