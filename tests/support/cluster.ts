import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { $ } from 'bun';
import { openEmbeddedPostgres } from '../../src/platform/database/embedded.ts';
import { POSTGRES_FILES_VERSION } from '../../src/platform/database/postgres-files.ts';
import { sharedFiles } from './database.ts';
import { makeDataDirectory } from './service.ts';

let cluster: Promise<string> | undefined;

/**
 * Gives a data directory the embedded PostgreSQL as a first start leaves it before the first statement: its programs and an
 * empty cluster, which is made once for a run and then copied. To make them takes most of a first start's processor time.
 */
export async function provideCluster(data_directory: string): Promise<void> {
  cluster ??= makeCluster();
  const empty = await cluster;
  const directory = join(data_directory, 'postgres');
  await mkdir(directory, { mode: 0o711 });
  await symlink(join(await sharedFiles(), POSTGRES_FILES_VERSION), join(directory, POSTGRES_FILES_VERSION));
  // Unlike the copy of `node:fs`, it keeps the owner, without whom PostgreSQL refuses to start.
  await $`cp -a ${empty} ${join(directory, 'cluster')}`.quiet();
}

/** Makes a cluster as the service does, and returns its directory, which is removed with the files of the run. */
async function makeCluster(): Promise<string> {
  const directory = await makeDataDirectory();
  const files_directory = await sharedFiles();
  await using _ = await openEmbeddedPostgres({ directory, files_directory, is_durable: false, events: { emit() {} } });
  return join(directory, 'cluster');
}
