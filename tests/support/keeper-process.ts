import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../src/platform/database/database.ts';
import { openEmbeddedPostgres } from '../../src/platform/database/embedded.ts';
import { migrateDatabase } from '../../src/platform/database/migrate.ts';
import { signalProcess } from '../../src/platform/system/processes.ts';
import { providePostgresCluster } from './database/postgres-cluster.ts';
import { databaseDirectoryOf, databaseOn, databasePrefix, TEST_DATABASE_URL, type TestServer } from './keeper.ts';
import { findProcessesOf } from './processes.ts';

// The keeper of a run of tests. The run requests a database by a line to its standard input, which closes when the run ends,
// even if the run is killed.
const [directory = '', machine_tmp = ''] = process.argv.slice(2);
const CLEANING_ROUNDS_MAX = 100;
// Ctrl-C reaches every process of the terminal: the keeper has to clean up after the others.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

// The run waits until this file is gone.
const { MUSTER_TEST_KEEPERS: keepers } = process.env;
const own_file = keepers === undefined ? undefined : join(keepers, String(process.pid));
if (own_file !== undefined) writeFileSync(own_file, '');

const database_directory = databaseDirectoryOf(directory);
const run_id = process.ppid;

let server: (TestServer & AsyncDisposable) | undefined;
for await (const line of console) {
  if (line !== 'database') continue;
  server ??= TEST_DATABASE_URL === undefined ? await openEmbedded() : await openExternal(TEST_DATABASE_URL);
  console.log(JSON.stringify(server));
}
await server?.[Symbol.asyncDispose]();
for (let round = 0; round < CLEANING_ROUNDS_MAX; round += 1) {
  const left = [directory, database_directory].flatMap(findProcessesOf);
  if (left.length === 0) break;
  for (const pid of left) signalProcess(pid, 'SIGKILL');
  await Bun.sleep(20);
}
for (const path of [directory, database_directory]) rmSync(path, { recursive: true, force: true });
if (own_file !== undefined) rmSync(own_file, { force: true });

/** Starts a PostgreSQL of the run's own, on a copy of a migrated cluster, whose only database is the migrated one. */
async function openEmbedded(): Promise<TestServer & AsyncDisposable> {
  await providePostgresCluster(database_directory, machine_tmp);
  const events = { emit() {} };
  const postgres = await openEmbeddedPostgres({ directory: database_directory, is_durable: false, events });
  const admin = postgres.connection;
  await using database = openDatabase(admin, 1);
  for (const name of ['muster_template', 'muster_empty']) {
    await database.queries.execute(sql.raw(`create database ${name} template ${admin.database} strategy file_copy`));
  }
  await using emptied = openDatabase(databaseOn(admin, 'muster_empty'), 1);
  await emptied.queries.execute(sql`drop schema public cascade`);
  await emptied.queries.execute(sql`create schema public`);
  return {
    admin,
    template: 'muster_template',
    empty: 'muster_empty',
    [Symbol.asyncDispose]: () => postgres[Symbol.asyncDispose](),
  };
}

/** Makes a template on a server that runs already. Disposing drops it, and the databases that the run left. */
async function openExternal(url: string): Promise<TestServer & AsyncDisposable> {
  const admin = databaseOn({ url }, 'postgres');
  const template = `muster_template_${run_id}`;
  await using database = openDatabase(admin, 1);
  await database.queries.execute(sql.raw(`create database ${template}`));
  await using migrated = openDatabase(databaseOn(admin, template), 1);
  await migrateDatabase(migrated);
  return {
    admin,
    template,
    empty: 'template0',
    async [Symbol.asyncDispose]() {
      await using closing = openDatabase(admin, 1);
      const left = await closing.queries.execute<{ datname: string }>(
        sql`select datname from pg_database where datname = ${template} or starts_with(datname, ${databasePrefix(run_id)})`,
      );
      for (const { datname } of left) {
        await closing.queries.execute(sql.raw(`drop database if exists ${datname} with (force)`));
      }
    },
  };
}
