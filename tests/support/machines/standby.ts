import { appendFile, chmod, chown, cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type EmbeddedPostgres, POSTGRES_USER } from '../../../src/platform/database/embedded.ts';
import { unpackPostgres } from '../../../src/platform/database/postgres-files.ts';
import { makePostgresDirectory, type PostgresDirectory, query } from '../database/embedded.ts';
import { sharedFiles } from '../database/postgres-cluster.ts';
import { waitFor } from '../wait.ts';

/** A primary PostgreSQL and a standby that follows it, as two servers of a cluster. */
export interface ReplicatedPostgres extends AsyncDisposable {
  primary: EmbeddedPostgres['connection'];
  standby: EmbeddedPostgres['connection'];
  /** Makes the standby a primary of its own. */
  promote(): Promise<void>;
}

/** Opens both. `prepare`: statements that the primary runs before the standby is copied from it. */
export async function openReplicated(...prepare: string[]): Promise<ReplicatedPostgres> {
  await using opened = new AsyncDisposableStack();
  const postgres_directory = opened.use(await makePostgresDirectory());
  const template = await postgres_directory.open();
  await query(template, ...prepare);
  await template[Symbol.asyncDispose]();
  const { cluster, sockets } = await copyCluster(postgres_directory);
  const { connection: primary } = opened.use(await postgres_directory.open());
  await appendFile(
    join(cluster, 'postgresql.auto.conf'),
    `primary_conninfo = 'host=${dirname(primary.path)} user=${primary.user}'\n`,
  );
  await writeFile(join(cluster, 'standby.signal'), '');
  await chownToPostgres(cluster);
  await startPostgres(cluster, sockets);
  const standby = { ...primary, path: join(sockets, '.s.PGSQL.5432') };
  await waitFor(async () => (await stateOf(cluster)) === 'ready', 'the standby to take connections');
  const everything = opened.move();
  return {
    primary,
    standby,
    async promote() {
      await query({ connection: standby }, 'select pg_promote()');
    },
    // Disposing of the primary's directory ends every process in it, the standby too.
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

async function copyCluster(postgres_directory: PostgresDirectory): Promise<{ cluster: string; sockets: string }> {
  const cluster = join(postgres_directory.directory, 'standby');
  const sockets = join(postgres_directory.directory, 'standby-socket');
  await cp(postgres_directory.cluster, cluster, { recursive: true });
  await chmod(cluster, 0o700);
  await mkdir(sockets, { mode: 0o700 });
  await chownToPostgres(sockets);
  return { cluster, sockets };
}

/** Starts a server on a cluster. It reports its state in the cluster's `postmaster.pid`. */
export async function startPostgres(cluster: string, sockets: string, ...settings: string[]): Promise<void> {
  const programs = await unpackPostgres(await sharedFiles());
  const as_user = process.getuid?.() === 0 ? POSTGRES_USER : {};
  const command = [
    join(programs, 'bin/postgres'),
    '-D',
    cluster,
    '-h',
    '',
    '-k',
    sockets,
    '-c',
    'fsync=off',
    '-N',
    '120',
  ];
  Bun.spawn([...command, ...settings], {
    ...as_user,
    cwd: '/',
    env: { PGDATA: cluster, LD_LIBRARY_PATH: join(programs, 'lib'), LC_ALL: 'C' },
    stdio: ['ignore', 'ignore', 'ignore'],
  }).unref();
}

/** Returns the status in a postmaster's pid file; undefined if there is none. */
export async function stateOf(cluster: string): Promise<string | undefined> {
  const lines = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '');
  return lines.split('\n')[7]?.trim();
}

/** Gives a directory and its content to PostgreSQL's user, if the tests run as root. */
async function chownToPostgres(directory: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const within = await readdir(directory, { recursive: true });
  for (const path of [directory, ...within.map((name) => join(directory, name))]) {
    await chown(path, POSTGRES_USER.uid, POSTGRES_USER.gid);
  }
}
