import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../src/platform/database/embedded.ts';
import { signalProcess } from '../../src/platform/processes.ts';
import { sharedFiles } from './database.ts';
import { findProcessesOf } from './processes.ts';

// The keeper of a run of tests. Its standard input ends with the run, however that ends; it asks for a database by a line.
const [directory = '', machine_tmp = ''] = process.argv.slice(2);
const CLEANING_ROUNDS_MAX = 100;
// Ctrl-C reaches every process of the terminal: the keeper has to clean up after the others.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

let postgres: EmbeddedPostgres | undefined;
for await (const line of console) {
  if (line !== 'database') continue;
  postgres ??= await openEmbeddedPostgres({
    directory: join(directory, 'shared'),
    files_directory: await sharedFiles(machine_tmp),
    is_durable: false,
    events: { emit() {} },
  });
  console.log(JSON.stringify(postgres.connection));
}
await postgres?.[Symbol.asyncDispose]();
for (let round = 0; round < CLEANING_ROUNDS_MAX; round += 1) {
  const left = findProcessesOf(directory);
  if (left.length === 0) break;
  for (const pid of left) signalProcess(pid, 'SIGKILL');
  await Bun.sleep(20);
}
rmSync(directory, { recursive: true, force: true });
