import { sql } from 'drizzle-orm';
import type { DataDirectory } from '../data-directory.ts';
import { ServiceError, StartError } from '../errors.ts';
import type { Events } from '../events.ts';
import { orAborted } from '../timeouts.ts';
import { type Database, type DatabaseAddress, openDatabase } from './database.ts';
import { type EmbeddedOptions, type EmbeddedPostgres, findEmbeddedPostgres, openEmbeddedPostgres } from './embedded.ts';
import { passwordFile, readEmbeddedPassword, replaceLostPassword, requirePassword } from './embedded-password.ts';
import { isUnavailable, rootCodeOf, rootMessageOf } from './failures.ts';

/** The server_version_num of PostgreSQL 15. */
const VERSION_MIN = 150_000;
/** A little longer than the time after which the driver gives up on a connection. */
const ANSWERS_WITHIN_MS = 6_000;

interface ConfiguredDatabase {
  database_url: string | undefined;
  database_pool: number;
}

/**
 * Opens the database at `address`, which is DATABASE_URL unless another one is given; without an address, the embedded
 * one. Throws the errors of `connectDatabase` and `connectEmbedded`.
 */
export async function openConfiguredDatabase(
  { database_url, database_pool }: ConfiguredDatabase,
  data: DataDirectory,
  events: Events,
  { address = addressOf(database_url), signal }: { address?: DatabaseAddress | undefined; signal?: AbortSignal } = {},
): Promise<Database> {
  if (address) return await connectDatabase(address, database_pool, signal);
  return await connectEmbedded({ directory: data.folder('postgres'), is_durable: true, events, signal }, database_pool);
}

const addressOf = (url: string | undefined) => (url === undefined ? undefined : { url });

/**
 * Connects to a PostgreSQL server. Throws StartError for a problem that only an operator can fix. If the server is
 * unavailable, throws the failure itself, which `describeUnavailability` recognizes.
 */
export async function connectDatabase(
  address: DatabaseAddress,
  pool_max: number,
  signal?: AbortSignal,
): Promise<Database> {
  return await connectUsable(address, pool_max, { signal, describeProblem: describeExternalProblem });
}

interface ConnectOptions {
  signal?: AbortSignal | undefined;
  /** Says what an operator can do about a failure, by the code and the message of PostgreSQL or TLS. */
  describeProblem(failure: Failure): string;
}

interface Failure {
  code: string;
  message: string;
}

async function connectUsable(address: DatabaseAddress, pool_max: number, options: ConnectOptions): Promise<Database> {
  await using opened = new AsyncDisposableStack();
  const database = opened.use(openAt(address, pool_max));
  if ((await readVersion(database, options)) < VERSION_MIN) {
    throw new StartError(
      'The PostgreSQL at DATABASE_URL is older than version 15: use a newer one, or unset DATABASE_URL to use the embedded one.',
    );
  }
  opened.move();
  return database;
}

/** Starts the embedded PostgreSQL and connects to it. Throws StartError if it does not start. */
export async function connectEmbedded(options: EmbeddedOptions, pool_max: number): Promise<Database> {
  await using opened = new AsyncDisposableStack();
  await replaceLostPassword(options.directory);
  const server = opened.use(await openEmbedded(options));
  const embedded = { directory: options.directory, is_root: process.getuid?.() === 0 };
  const address = await requirePassword(server, embedded);
  const describeProblem = describeEmbeddedProblem(options.directory);
  const database = opened.use(await connectUsable(address, pool_max, { signal: options.signal, describeProblem }));
  const everything = opened.move();
  return { ...database, [Symbol.asyncDispose]: () => everything.disposeAsync() };
}

/** Connects to the embedded PostgreSQL that another process runs. Throws StartError if none runs. */
export async function connectRunningEmbedded(
  directory: string,
  pool_max: number,
  signal: AbortSignal,
): Promise<Database> {
  const connection = findEmbeddedPostgres(directory);
  if (!connection) throw new StartError(`No PostgreSQL runs in ${directory} yet: repeat this once Muster is ready.`);
  const password = readEmbeddedPassword(directory);
  const address = { ...connection, ...(password === undefined ? {} : { password }) };
  return await connectUsable(address, pool_max, { signal, describeProblem: describeEmbeddedProblem(directory) });
}

function openAt(address: DatabaseAddress, pool_max: number): Database {
  try {
    return openDatabase(address, pool_max);
  } catch {
    // Without the cause, which quotes the address with its password.
    throw new StartError(
      'DATABASE_URL cannot be read: write it as postgres://user:password@host:port/database, with %40 for @ and %2F for / in the password.',
    );
  }
}

async function openEmbedded(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  try {
    return await openEmbeddedPostgres(options);
  } catch (cause) {
    if (cause instanceof StartError || options.signal?.aborted) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(
      `The embedded PostgreSQL does not run here: correct the problem below, or set DATABASE_URL to your own PostgreSQL.\n${reason}`,
      { cause },
    );
  }
}

/**
 * Returns the version of the server, as in `server_version_num`. Throws StartError for a problem that only an operator can
 * fix, and the failure itself if the server is unavailable.
 */
async function readVersion({ queries }: Database, { signal, describeProblem }: ConnectOptions): Promise<number> {
  const reading = queries.execute<{ version: number }>(
    sql`select current_setting('server_version_num')::int as version`,
  );
  const [row] = await answerInTime(reading, signal).catch((cause: unknown) => {
    if (signal?.aborted) throw signal.reason;
    const failure = { code: rootCodeOf(cause), message: rootMessageOf(cause) };
    if (findRefusal(failure) === undefined && isUnavailable(cause)) throw cause;
    throw new StartError(describeProblem(failure), { cause });
  });
  return row?.version ?? 0;
}

/** Throws DATABASE_BUSY if there is no answer in time. After some failures the driver keeps connecting forever. */
async function answerInTime<Answer>(answer: PromiseLike<Answer>, signal: AbortSignal | undefined): Promise<Answer> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new ServiceError('DATABASE_BUSY', {})), ANSWERS_WITHIN_MS);
  try {
    return await orAborted(answer, signal ? AbortSignal.any([late.signal, signal]) : late.signal);
  } finally {
    clearTimeout(timer);
  }
}

function findRefusal({ code, message }: Failure): string | undefined {
  const [, sentence] = REFUSALS.find(([refusal]) => refusal.test(`${code} ${message}`)) ?? [];
  return sentence;
}

function describeExternalProblem(failure: Failure): string {
  const { code, message } = failure;
  return (
    findRefusal(failure) ?? `The PostgreSQL at DATABASE_URL cannot be used (${code || message}): correct the address.`
  );
}

function describeEmbeddedProblem(directory: string): (failure: Failure) => string {
  return ({ code, message }) =>
    code === WRONG_PASSWORD
      ? `The embedded PostgreSQL does not accept the password in ${passwordFile(directory)}: remove that file, and start Muster again.`
      : `The embedded PostgreSQL in ${directory} cannot be used: ${message} (${code}).`;
}

const WRONG_PASSWORD = '28P01';
/** Problems that only an operator can fix, by the code and the message of PostgreSQL or TLS. */
const REFUSALS: [refusal: RegExp, sentence: string][] = [
  [/^28P01/, 'PostgreSQL refuses the user or the password of DATABASE_URL: correct them.'],
  [
    /^28000/,
    'PostgreSQL does not let the user of DATABASE_URL connect from this machine: correct the user, change pg_hba.conf, or add ?sslmode=require if it only accepts TLS.',
  ],
  [/^3D000/, 'The database that DATABASE_URL names does not exist: create it, or correct the name.'],
  [/^42501/, 'The user of DATABASE_URL may not connect to its database: grant CONNECT, or correct the user.'],
  [
    /^TLS_REFUSED/,
    'DATABASE_URL asks for TLS, which its PostgreSQL does not support: set ssl = on there, or remove sslmode.',
  ],
  [
    /^(\S*CERT|\S*LEAF_SIGNATURE|ERR_(TLS|SSL))/,
    'The certificate of the PostgreSQL at DATABASE_URL is not trusted for that host: install another one, or set sslmode=require, which does not check it.',
  ],
];
