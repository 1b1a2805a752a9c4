import { existsSync } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { findAsset } from '../assets.ts';
import { assert, StartError } from '../errors.ts';
import type { Events } from '../events.ts';
import { syncPath, syncTree } from '../system/durable.ts';
import { tryLock } from '../system/libc.ts';
import { SECOND_MS } from '../units.ts';
import { type DatabaseAddress, openDatabase } from './database.ts';
import { openEmbeddedPostgres } from './embedded.ts';
import { requirePassword } from './embedded-password.ts';
import { migrateDatabase } from './migrate.ts';
import { POSTGRES_FILES_VERSION } from './postgres-files.ts';

const TEMPLATE_PREFIX = 'cluster-';
const LOCK_PAUSE_MS = 20;
/** Time for another run to create the template. Usually it takes a few seconds, most of which is `initdb`. */
const TEMPLATE_WITHIN_MS = 120_000;
/** Templates of other releases are removed after this time. */
const TEMPLATE_KEPT_FOR_MS = 30 * 24 * 3_600_000;

interface ThrowawayOptions {
  /** For this PostgreSQL alone. */
  directory: string;
  /** For what all throwaway databases of this user share: the programs of PostgreSQL, and a cluster with all tables. */
  cache_directory: string;
  events: Events;
  /** Time to wait while another run creates what is shared. */
  template_within_ms?: number;
}

/**
 * Starts a PostgreSQL that may lose its data when the machine stops, on a copy of a migrated cluster. The first call of a
 * release creates that cluster, while other calls wait.
 */
export async function openThrowawayPostgres(
  options: ThrowawayOptions,
): Promise<{ address: DatabaseAddress } & AsyncDisposable> {
  const { directory, cache_directory, events } = options;
  await using opened = new AsyncDisposableStack();
  await provideMigratedCluster(options);
  const server = opened.use(
    await openEmbeddedPostgres({ directory, programs_directory: cache_directory, is_durable: false, events }),
  );
  const address = await requirePassword(server, { directory, is_root: process.getuid?.() === 0 });
  const everything = opened.move();
  return { address, [Symbol.asyncDispose]: () => everything.disposeAsync() };
}

/** Copies a migrated cluster to the directory, unless it has a cluster. */
export async function provideMigratedCluster(options: ThrowawayOptions): Promise<void> {
  const cluster = join(options.directory, 'cluster');
  if (!existsSync(cluster)) await copyCluster(await provideTemplate(options), cluster);
}

/** Copies a cluster with its owner and modes, which PostgreSQL checks. An incomplete copy is never used. */
async function copyCluster(template: string, cluster: string): Promise<void> {
  const unfinished = `${cluster}.unfinished`;
  await rm(unfinished, { recursive: true, force: true });
  const copying = Bun.spawn(['cp', '-a', '--reflink=auto', template, unfinished], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const problem = await new Response(copying.stderr).text();
  assert((await copying.exited) === 0, `the database can be copied: ${problem}`);
  await rename(unfinished, cluster);
}

/** Returns the cluster of this release; creates it if it is missing. Throws StartError if another run takes too long for it. */
async function provideTemplate({
  cache_directory,
  events,
  template_within_ms = TEMPLATE_WITHIN_MS,
}: ThrowawayOptions): Promise<string> {
  const name = `${TEMPLATE_PREFIX}${releaseDigest()}`;
  const template = join(cache_directory, name);
  if (existsSync(template)) return template;
  await mkdir(cache_directory, { recursive: true, mode: 0o711 });
  await using lock = await open(join(cache_directory, 'lock'), 'a', 0o600);
  const deadline = performance.now() + template_within_ms;
  while (!tryLock(lock.fd)) {
    if (performance.now() > deadline) throw new StartError(tooLate(cache_directory, template_within_ms));
    await Bun.sleep(LOCK_PAUSE_MS);
  }
  if (existsSync(template)) return template;
  // Each call of a release uses the same name, to continue what a killed one began.
  const unfinished = join(cache_directory, `unfinished-${name}`);
  await createCluster(unfinished, { cache_directory, events });
  // Later calls use it too, also after a power failure.
  await syncTree(join(unfinished, 'cluster'));
  await rename(join(unfinished, 'cluster'), template);
  await syncPath(cache_directory);
  await rm(unfinished, { recursive: true, force: true });
  await removeOld(cache_directory, name);
  return template;
}

function tooLate(cache_directory: string, waited_ms: number): string {
  const seconds = Math.round(waited_ms / SECOND_MS);
  return `Another run of tests has been preparing PostgreSQL in ${cache_directory} for more than ${seconds} s: end that run, then try again.`;
}

/** Creates a small cluster, because it is copied often: with small write-ahead log files, and without template databases. */
async function createCluster(
  directory: string,
  { cache_directory, events }: Pick<ThrowawayOptions, 'cache_directory' | 'events'>,
): Promise<void> {
  await using server = await openEmbeddedPostgres({
    directory,
    programs_directory: cache_directory,
    is_durable: false,
    wal_segment_mb: 1,
    events,
  });
  await using database = openDatabase(server.connection, 1);
  await migrateDatabase(database);
  await database.queries.execute(sql`update pg_database set datistemplate = false where datname like 'template%'`);
  for (const name of ['template0', 'template1']) {
    await database.queries.execute(sql.raw(`drop database if exists ${name}`));
  }
}

/** Returns a digest of what determines the cluster: the version of PostgreSQL, and the migrations. */
function releaseDigest(): string {
  const migrations = readMigrationFiles({ migrationsFolder: findAsset('drizzle') }).map(({ hash }) => hash);
  const parts = [POSTGRES_FILES_VERSION, ...migrations];
  return new Bun.CryptoHasher('sha256').update(parts.join('\n')).digest('hex').slice(0, 16);
}

async function removeOld(cache_directory: string, current: string): Promise<void> {
  const names = await readdir(cache_directory);
  for (const name of names.filter((one) => one.startsWith(TEMPLATE_PREFIX) && one !== current)) {
    const directory = join(cache_directory, name);
    const { mtimeMs } = await stat(directory);
    if (Date.now() - mtimeMs > TEMPLATE_KEPT_FOR_MS) await rm(directory, { recursive: true, force: true });
  }
}
