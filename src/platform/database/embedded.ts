import { closeSync, existsSync, openSync, realpathSync } from 'node:fs';
import { chown, copyFile, mkdir, mkdtemp, rename, rm, rmdir, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { StartError } from '../errors.ts';
import type { Events } from '../events.ts';
import { type Loop, startLoop } from '../loop.ts';
import { isShortOfSpace } from '../system/disk-space.ts';
import { syncPath } from '../system/durable.ts';
import {
  findProcessesByEnvironment,
  identifyProcess,
  isRunning,
  readCommandLine,
  signalProcess,
} from '../system/processes.ts';
import { copyForNamelessUser, hasName } from './nameless-user.ts';
import { POSTGRES_FILES_VERSION, unpackPostgres } from './postgres-files.ts';
import {
  findPostmaster,
  lastLines,
  type Postmaster,
  readLines,
  type StartLimits,
  waitUntilPostmasterReady,
} from './postmaster.ts';

const USER = 'muster';
const SOCKET_NAME = '.s.PGSQL.5432';
/** Maximum time without a sign of progress. A recovery after a crash may take any time. */
const STARTS_WITHIN_MS = 60_000;
const PROGRESS_EVERY_MS = 10_000;
const STOPPED_WITHIN_MS = 20_000;
/** The end of a server that this process started is noticed at once; that of another one by the next check. */
const CHECK_EVERY_MS = 5_000;
/** Size above which the log is emptied, after a copy of it was made. */
const LOG_BYTES_MAX = 32 * 1024 ** 2;
/** PostgreSQL's own is 16. All commits wait while a file is created, for which 16 MiB take 48 ms on some disks. */
const WAL_SEGMENT_MB = 4;
/** The path of a unix socket has at most 108 bytes, with its final zero and the name .s.PGSQL.5432. */
const SOCKET_DIRECTORY_BYTES_MAX = 90;

/** PostgreSQL refuses to run as root, so it runs as `nobody`, which every Linux has. */
export const POSTGRES_USER = { uid: 65_534, gid: 65_534 };
const OWN_USER_ID = process.getuid?.() ?? 0;
const USER_ID = OWN_USER_ID === 0 ? POSTGRES_USER.uid : OWN_USER_ID;

export interface EmbeddedPostgres extends AsyncDisposable {
  /** The options of postgres.js to connect with. */
  connection: { path: string; user: string; database: string; password?: string };
}

export interface EmbeddedOptions {
  /** Holds the cluster. */
  directory: string;
  /** Where the programs of PostgreSQL are unpacked; by default in `directory`. */
  programs_directory?: string;
  /** False only in tests: without fsync it is ten times as fast, but data is lost if the machine stops. */
  is_durable: boolean;
  /** MiB of a file of the write-ahead log, for a new cluster: 1, 2, 4 and so on. */
  wal_segment_mb?: number;
  events: Events;
  /** Interval of the events that report a recovery. */
  progress_every_ms?: number;
  /** Ends a start, which then stops the server and throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Time until the server reports that it starts or is ready. */
  starts_within_ms?: number;
  log_bytes_max?: number;
}

/**
 * Starts the embedded PostgreSQL, or finds one that outlived an earlier process, and keeps it running until disposed. Other
 * code gets only an address. Throws an error with the last lines of its log if it does not start, and StartError if the
 * directory belongs to another version of PostgreSQL.
 */
export async function openEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { is_durable, events, starts_within_ms = STARTS_WITHIN_MS, progress_every_ms = PROGRESS_EVERY_MS } = options;
  const { log_bytes_max = LOG_BYTES_MAX, wal_segment_mb = WAL_SEGMENT_MB } = options;
  await mkdir(options.directory, { recursive: true, mode: 0o711 });
  const directory = realpathSync(options.directory);
  const programs = await unpackPostgres(options.programs_directory ?? directory);
  const instance: Instance = {
    programs,
    cluster: join(directory, 'cluster'),
    log: join(directory, 'postgres.log'),
    is_durable,
    wal_segment_mb,
    start_limits: { events, starts_within_ms, progress_every_ms },
    onExit: () => supervision?.wake(),
  };
  let supervision: Loop | undefined;
  if (existsSync(instance.cluster)) assertSameMajor(instance.cluster);
  else await initialize(instance, options.signal);

  let running = await ensureRunning(instance, directory, { signal: options.signal }).catch(async (error: unknown) => {
    if (options.signal?.aborted) await stop(instance.cluster);
    throw error;
  });
  const closing = new AbortController();
  let is_lost = false;
  supervision = startLoop({
    name: 'embedded-postgres',
    every_ms: CHECK_EVERY_MS,
    signal: closing.signal,
    events,
    async step() {
      if (findPostmaster(instance.cluster)?.pid === running.pid) {
        await limitLog(instance.log, log_bytes_max);
        return 0;
      }
      // Once, however many attempts its restart takes.
      if (!is_lost) events.emit({ event: 'database_lost', cause: new Error(lastLines(instance.log)) });
      is_lost = true;
      running = await ensureRunning(instance, directory, { known: running, signal: closing.signal });
      is_lost = false;
      return 1;
    },
  });
  events.emit({ event: 'database_started', process_id: running.pid });

  return {
    connection: connectionAt(running),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await supervision?.stopped;
      await stop(instance.cluster);
      await removeOutsideSocketDirectory(running.socket_directory, directory);
    },
  };
}

/** Returns how to reach an embedded PostgreSQL that another process runs; undefined if none runs there. */
export function findEmbeddedPostgres(directory: string): EmbeddedPostgres['connection'] | undefined {
  const running = findPostmaster(join(realpathSync(directory), 'cluster'));
  return running && connectionAt(running);
}

const connectionAt = ({ socket_directory }: Postmaster) => ({
  path: join(socket_directory, SOCKET_NAME),
  user: USER,
  database: 'postgres',
});

/** Throws StartError if the cluster belongs to another major version, whose files this PostgreSQL cannot read. */
function assertSameMajor(cluster: string): void {
  const [made_by = ''] = readLines(join(cluster, 'PG_VERSION'));
  const [carried] = POSTGRES_FILES_VERSION.split('.');
  if (made_by === '' || made_by === carried) return;
  throw new StartError(
    `The database in ${cluster} was created by PostgreSQL ${made_by}, but this Muster contains ${carried}: start the Muster that created it, or set MUSTER_DATA to another directory.`,
  );
}

/** Returns the running postmaster of the cluster if it can be used, else a new one. */
async function ensureRunning(
  instance: Instance,
  directory: string,
  { known, signal }: { known?: Postmaster; signal?: AbortSignal | undefined } = {},
): Promise<Postmaster> {
  const found = findPostmaster(instance.cluster);
  if (found && isUsable(found, instance.programs) && (await waitUntilPostmasterReady(instance, found.pid, signal)))
    return found;
  signal?.throwIfAborted();
  // Stops a postmaster that cannot be used: of an earlier release, without its socket, or stopping already.
  await stop(instance.cluster);
  await endStrays(instance.cluster);
  const socket = known?.socket_directory ?? (await makeSocketDirectory(directory));
  await removeLockFiles(instance.cluster, socket);
  const pid = start(instance, socket);
  if (await waitUntilPostmasterReady(instance, pid, signal)) return { pid, socket_directory: socket };
  // It may have no pid file yet, by which `stop` would find it.
  if (signal?.aborted) await stopPostmaster(pid);
  signal?.throwIfAborted();
  throw new Error(`the embedded PostgreSQL did not start:\n${lastLines(instance.log)}`);
}

/**
 * Removes the pid file and the socket's lock file of a killed postmaster. Another process may have its pid by now, or it
 * may be a zombie that no parent waits for: PostgreSQL would take either for another server on the cluster.
 */
async function removeLockFiles(cluster: string, socket_directory: string): Promise<void> {
  const lock_files = [join(cluster, 'postmaster.pid'), join(socket_directory, `${SOCKET_NAME}.lock`)];
  await Promise.all(lock_files.map((path) => rm(path, { force: true })));
}

interface Instance {
  programs: string;
  cluster: string;
  log: string;
  is_durable: boolean;
  wal_segment_mb: number;
  start_limits: StartLimits;
  /** Called when a postmaster that this process started has ended. */
  onExit(): void;
}

/** Creates the cluster under another name and renames it once it is complete, so that a crash does no harm. */
async function initialize(
  { programs, cluster, log, is_durable, wal_segment_mb }: Instance,
  signal: AbortSignal | undefined,
): Promise<void> {
  signal?.throwIfAborted();
  const unfinished = `${cluster}.unfinished`;
  await endStrays(unfinished);
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { mode: 0o700 });
  await giveToPostgres(unfinished);
  const copies = `${cluster}.programs`;
  const initdb_programs = hasName(USER_ID) ? programs : await copyForNamelessUser(programs, copies);
  const command = [
    join(initdb_programs, 'bin/initdb'),
    `--pgdata=${unfinished}`,
    `--username=${USER}`,
    // Only this user can enter the socket's directory, and the server listens nowhere else.
    '--auth-local=trust',
    '--auth-host=reject',
    '--encoding=UTF8',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
    '--no-instructions',
    ...(is_durable ? [] : ['--no-sync']),
    `--wal-segsize=${wal_segment_mb}`,
  ];
  const output = openSync(log, 'a', 0o600);
  // In its own session, like the server: a ctrl-C in the terminal reaches only Muster, which then ends initdb.
  const initdb = Bun.spawn(command, {
    ...spawnOptions(programs, unfinished),
    ...(signal && { signal }),
    detached: true,
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  const exit_code = await initdb.exited;
  signal?.throwIfAborted();
  if (exit_code !== 0) throw new Error(`initdb failed:\n${lastLines(log)}`);
  await rename(unfinished, cluster);
  await syncPath(dirname(cluster));
  await rm(copies, { recursive: true, force: true });
}

function start({ programs, cluster, log, is_durable, onExit }: Instance, socket_directory: string): number {
  const settings = {
    listen_addresses: '',
    unix_socket_directories: socket_directory,
    max_connections: '120',
    shared_buffers: '64MB',
    max_wal_size: '512MB',
    min_wal_size: '128MB',
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    logging_collector: 'off',
    ...(is_durable ? {} : { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off', autovacuum: 'off' }),
  };
  const command = [join(programs, 'bin/postgres'), '-D', cluster];
  for (const [name, value] of Object.entries(settings)) command.push('-c', `${name}=${value}`);
  const output = openSync(log, 'a', 0o600);
  // In its own session, so that a ctrl-C in the terminal does not reach it. The database stops last.
  const child = Bun.spawn(command, {
    ...spawnOptions(programs, cluster),
    detached: true,
    onExit,
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  child.unref();
  return child.pid;
}

/** Empties the log if it is too long. Its content replaces that of a second file. */
async function limitLog(log: string, bytes_max: number): Promise<void> {
  if (Bun.file(log).size <= bytes_max) return;
  await copyFile(log, `${log}.1`).catch((error: unknown) => {
    // The database needs the space more than the log.
    if (!isShortOfSpace(error)) throw error;
  });
  // PostgreSQL appends, so it goes on at the beginning.
  await truncate(log);
}

/**
 * The environment marks the processes: a start that is killed may leave some without a pid file, which the next start ends.
 * The mark is no variable of PostgreSQL, such as PGDATA, because other programs have those too.
 */
const MARK = 'MUSTER_POSTGRES_CLUSTER';

function spawnOptions(programs: string, directory: string) {
  const env = { [MARK]: directory, LD_LIBRARY_PATH: join(programs, 'lib'), LC_ALL: 'C', PATH: '/usr/bin:/bin' };
  return process.getuid?.() === 0 ? { env, ...POSTGRES_USER } : { env };
}

/** Ends processes that a killed start left. Its initdb, for example, would go on and remove the new cluster. */
async function endStrays(directory: string): Promise<void> {
  const deadline = performance.now() + STOPPED_WITHIN_MS;
  const mark = `${MARK}=${directory}`;
  let strays = findProcessesByEnvironment(mark);
  while (strays.length > 0 && performance.now() < deadline) {
    for (const pid of strays) signalProcess(pid, 'SIGKILL');
    await Bun.sleep(5);
    strays = findProcessesByEnvironment(mark);
  }
}

function isUsable({ pid, socket_directory }: Postmaster, programs: string): boolean {
  const is_this_release = readCommandLine(pid)[0] === join(programs, 'bin/postgres');
  return is_this_release && existsSync(join(socket_directory, SOCKET_NAME));
}

/** Stops the postmaster of a cluster, if one runs. */
async function stop(cluster: string): Promise<void> {
  const running = findPostmaster(cluster);
  if (running) await stopPostmaster(running.pid);
}

/**
 * Stops a postmaster by a fast shutdown (SIGINT). If that takes too long, by an immediate one, after which the next start
 * needs a recovery.
 */
async function stopPostmaster(pid: number): Promise<void> {
  const postmaster = identifyProcess(pid);
  if (!postmaster) return;
  signalProcess(postmaster.pid, 'SIGINT');
  const deadline = performance.now() + STOPPED_WITHIN_MS;
  // Waits for the process, because it removes its pid file shortly before it ends.
  while (isRunning(postmaster) && performance.now() < deadline) await Bun.sleep(5);
  if (isRunning(postmaster)) signalProcess(postmaster.pid, 'SIGQUIT');
}

async function makeSocketDirectory(directory: string): Promise<string> {
  const beside = join(directory, 'socket');
  if (Buffer.byteLength(beside) > SOCKET_DIRECTORY_BYTES_MAX) {
    const elsewhere = await mkdtemp(join(tmpdir(), 'muster-'));
    await giveToPostgres(elsewhere);
    return elsewhere;
  }
  await mkdir(beside, { recursive: true, mode: 0o700 });
  await giveToPostgres(beside);
  return beside;
}

/** Removes a socket directory outside of the data directory, because the next start creates its own. */
async function removeOutsideSocketDirectory(socket_directory: string, directory: string): Promise<void> {
  if (dirname(socket_directory) !== directory) await rmdir(socket_directory).catch(() => {});
}

async function giveToPostgres(directory: string): Promise<void> {
  if (process.getuid?.() === 0) await chown(directory, POSTGRES_USER.uid, POSTGRES_USER.gid);
}
