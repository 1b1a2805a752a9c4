import { sql } from 'drizzle-orm';
import type { DataDirectory } from '../data-directory.ts';
import { StartError } from '../errors.ts';
import type { Events } from '../events.ts';
import { type Database, type DatabaseAddress, openDatabase } from './database.ts';
import { type EmbeddedOptions, openEmbeddedPostgres } from './embedded.ts';
import { toServiceError } from './failures.ts';

/** PostgreSQL 15, as its server_version_num has it. */
const VERSION_MIN = 150_000;

interface ConfiguredDatabase {
  database_url: string | undefined;
  database_pool: number;
}

/** The database that the configuration names, or the embedded one. */
export async function openConfiguredDatabase(
  { database_url, database_pool }: ConfiguredDatabase,
  data: DataDirectory,
  events: Events,
  address: DatabaseAddress | undefined = database_url === undefined ? undefined : { url: database_url },
): Promise<Database> {
  if (address) return await connectDatabase(address, database_pool);
  return await connectEmbedded({ directory: data.folder('postgres'), is_durable: true, events }, database_pool);
}

/** Connects to a PostgreSQL server. Throws {@link StartError} when it cannot be used. */
export async function connectDatabase(address: DatabaseAddress, pool_max: number): Promise<Database> {
  await using opened = new AsyncDisposableStack();
  const database = opened.use(openAt(address, pool_max));
  await assertUsable(database);
  opened.move();
  return database;
}

/** The embedded PostgreSQL with a connection to it, closed together. Throws {@link StartError} when it does not start. */
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
    // The failure quotes the address, and with it the password: it must not be its cause.
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

async function assertUsable({ queries }: Database): Promise<void> {
  let version: number;
  try {
    const [row] = await queries.execute<{ version: number }>(
      sql`select current_setting('server_version_num')::int as version`,
    );
    version = row?.version ?? 0;
  } catch (cause) {
    throw new StartError(
      `PostgreSQL cannot be reached at DATABASE_URL (${rootOf(cause)}): start it, or correct DATABASE_URL.`,
      { cause },
    );
  }
  if (version < VERSION_MIN) {
    throw new StartError(
      'The PostgreSQL at DATABASE_URL is older than 15: use a newer one, or none for the embedded one.',
    );
  }
}

/** A database that fails while the service starts, as a {@link StartError}; any other failure as it is. */
export function asStartError(cause: unknown): unknown {
  const code = cause instanceof StartError ? undefined : toServiceError(cause)?.code;
  if (code !== 'DATABASE_BUSY' && code !== 'DATABASE_UNAVAILABLE') return cause;
  const what = code === 'DATABASE_BUSY' ? 'did not answer in time' : 'was lost';
  return new StartError(
    `The database ${what} while Muster started (${code}): start Muster again, and if that repeats, look what keeps PostgreSQL busy.`,
    { cause },
  );
}

/** What it comes down to, without the query. */
function rootOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause !== undefined) return rootOf(error.cause);
  return 'code' in error ? `${error.code}` : error.message;
}
