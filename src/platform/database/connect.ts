import { sql } from 'drizzle-orm';
import type { DataDirectory } from '../data-directory.ts';
import { ServiceError, StartError } from '../errors.ts';
import type { Events } from '../events.ts';
import { type Database, type DatabaseAddress, openDatabase } from './database.ts';
import { type EmbeddedOptions, openEmbeddedPostgres } from './embedded.ts';
import { describeAbsence, rootCodeOf, rootMessageOf } from './failures.ts';

/** PostgreSQL 15, as its server_version_num has it. */
const VERSION_MIN = 150_000;
/** A little longer than the driver takes to give up on a connection. */
const ANSWERS_WITHIN_MS = 6_000;

interface ConfiguredDatabase {
  database_url: string | undefined;
  database_pool: number;
}

/**
 * Opens the database that the configuration names, or the embedded one. Throws as {@link connectDatabase} and
 * {@link connectEmbedded} do.
 */
export async function openConfiguredDatabase(
  { database_url, database_pool }: ConfiguredDatabase,
  data: DataDirectory,
  events: Events,
  { address = addressOf(database_url), signal }: { address?: DatabaseAddress | undefined; signal?: AbortSignal } = {},
): Promise<Database> {
  if (address) return await connectDatabase(address, database_pool, signal);
  return await connectEmbedded({ directory: data.folder('postgres'), is_durable: true, events }, database_pool);
}

const addressOf = (url: string | undefined) => (url === undefined ? undefined : { url });

/**
 * Connects to a PostgreSQL server. Throws {@link StartError} when only an operator can mend what is wrong, and the failure
 * itself when the server is away: `describeAbsence` knows it.
 */
export async function connectDatabase(
  address: DatabaseAddress,
  pool_max: number,
  signal?: AbortSignal,
): Promise<Database> {
  await using opened = new AsyncDisposableStack();
  const database = opened.use(openAt(address, pool_max));
  await assertUsable(database, signal);
  opened.move();
  return database;
}

/** Starts the embedded PostgreSQL and connects to it. Throws {@link StartError} if it does not start. */
export async function connectEmbedded(options: EmbeddedOptions, pool_max: number): Promise<Database> {
  await using opened = new AsyncDisposableStack();
  const server = opened.use(await openEmbedded(options));
  const database = opened.use(await connectDatabase(server.connection, pool_max));
  const everything = opened.move();
  return { ...database, [Symbol.asyncDispose]: () => everything.disposeAsync() };
}

function openAt(address: DatabaseAddress, pool_max: number): Database {
  try {
    return openDatabase(address, pool_max);
  } catch {
    // The failure quotes the address with its password, so it must not be the cause.
    throw new StartError(
      'DATABASE_URL cannot be read: write it as postgres://user:password@host:port/database, with %40 for @ and %2F for / in the password.',
    );
  }
}

async function openEmbedded(options: EmbeddedOptions) {
  try {
    return await openEmbeddedPostgres(options);
  } catch (cause) {
    if (cause instanceof StartError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(
      `The embedded PostgreSQL does not run here: set DATABASE_URL to a PostgreSQL of your own, or mend what it says.\n${reason}`,
      { cause },
    );
  }
}

async function assertUsable({ queries }: Database, signal: AbortSignal | undefined): Promise<void> {
  const reading = queries.execute<{ version: number }>(
    sql`select current_setting('server_version_num')::int as version`,
  );
  const [row] = await answerInTime(reading, signal).catch((cause: unknown) => {
    if (signal?.aborted) throw signal.reason;
    const told = `${rootCodeOf(cause)} ${rootMessageOf(cause)}`;
    const [, sentence] = REFUSALS.find(([refusal]) => refusal.test(told)) ?? [];
    if (sentence === undefined && describeAbsence(cause) !== undefined) throw cause;
    const reason = rootCodeOf(cause) || rootMessageOf(cause);
    throw new StartError(sentence ?? `DATABASE_URL leads to no PostgreSQL that can be used (${reason}): correct it.`, {
      cause,
    });
  });
  if ((row?.version ?? 0) < VERSION_MIN) {
    throw new StartError(
      'The PostgreSQL at DATABASE_URL is older than 15: use a newer one, or none for the embedded one.',
    );
  }
}

/** Fails with DATABASE_BUSY when there is no answer in time: some failures make the driver connect again and again. */
async function answerInTime<Answer>(answer: PromiseLike<Answer>, signal: AbortSignal | undefined): Promise<Answer> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new ServiceError('DATABASE_BUSY', {})), ANSWERS_WITHIN_MS);
  const abandon = () => late.reject(signal?.reason);
  signal?.addEventListener('abort', abandon);
  if (signal?.aborted) abandon();
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abandon);
  }
}

/** What only an operator can mend, by the code and the message of PostgreSQL or TLS. */
const REFUSALS: [refusal: RegExp, sentence: string][] = [
  [/^28P01/, 'PostgreSQL refuses the user or the password of DATABASE_URL: correct them.'],
  [
    /^28000/,
    'PostgreSQL does not let the user of DATABASE_URL in from this machine: correct the user, change pg_hba.conf, or add ?sslmode=require where only TLS is let in.',
  ],
  [/^3D000/, 'The database that DATABASE_URL names does not exist: create it, or correct the name.'],
  [/^42501/, 'The user of DATABASE_URL may not connect to its database: grant CONNECT, or correct the user.'],
  [
    /^TLS_REFUSED/,
    'DATABASE_URL asks for TLS, which the PostgreSQL there does not have: set ssl = on there, or leave sslmode out.',
  ],
  [
    /^(\S*CERT|\S*LEAF_SIGNATURE|ERR_(TLS|SSL))/,
    'The certificate of the PostgreSQL at DATABASE_URL is not one to trust for that host: install another, or write sslmode=require, which does not check it.',
  ],
];

/** An absence of the database, as a {@link StartError} for those who do not wait for it; any other failure as it is. */
export function asStartError(cause: unknown): unknown {
  const reason = describeAbsence(cause);
  if (reason === undefined) return cause;
  return new StartError(`Muster cannot start, because ${reason}: start PostgreSQL, or correct DATABASE_URL.`, {
    cause,
  });
}
