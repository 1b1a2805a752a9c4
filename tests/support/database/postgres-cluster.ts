import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { POSTGRES_FILES_VERSION, unpackPostgres } from '../../../src/platform/database/postgres-files.ts';
import { provideMigratedCluster } from '../../../src/platform/database/throwaway.ts';
import { MACHINE_TMP } from '../keeper.ts';

/**
 * The directory in which runs share the unpacked programs of PostgreSQL and a migrated cluster; other users must be able to
 * enter it.
 */
export async function sharedFiles(machine_tmp = MACHINE_TMP): Promise<string> {
  const directory = join(machine_tmp, `muster-tests-files-${process.getuid?.() ?? 0}`);
  await mkdir(directory, { recursive: true, mode: 0o755 });
  return directory;
}

/**
 * Writes the programs and a migrated cluster to a directory of the embedded PostgreSQL, as a first start leaves them before
 * its first row. Making them takes most of the processor time of a first start.
 */
export async function providePostgresCluster(directory: string, machine_tmp = MACHINE_TMP): Promise<void> {
  const cache_directory = await sharedFiles(machine_tmp);
  await mkdir(directory, { recursive: true, mode: 0o711 });
  await symlink(await unpackPostgres(cache_directory), join(directory, POSTGRES_FILES_VERSION));
  await provideMigratedCluster({ directory, cache_directory, events: { emit() {} } });
}
