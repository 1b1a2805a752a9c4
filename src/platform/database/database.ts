import { sql } from 'drizzle-orm';
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { ServiceError } from '../errors.ts';
import { DEADLINES, type Deadlines, limitClient, limitPromise, limitQuery } from './deadlines.ts';
import { createReplaceableConnection, type DedicatedConnection } from './dedicated-connection.ts';
import type { EmbeddedPostgres } from './embedded.ts';
import { isDiskFull, isUnavailable } from './failures.ts';
import { retryConflicts } from './retries.ts';
import { openSocket } from './socket.ts';

const STATEMENT_TIMEOUT_MS = 10_000;
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 15_000;
const CONNECT_TIMEOUT_S = 5;
/** Short: statements have ended by then, and only abandoned ones and lost connections may still be open. */
const CLOSE_WITHIN_S = 1;
/** Long enough to migrate the largest table. Other processes wait for it. */
const EXCLUSIVE_TIMEOUT_MS = 15 * 60_000;
/** For a server that does not apply its own timeout, because it no longer answers. */
const EXCLUSIVE_DEADLINE_MS = EXCLUSIVE_TIMEOUT_MS + 10_000;
const LOCK_RETRY_EVERY_MS = 100;
/** PostgreSQL's longest timeout. postgres.js does not send 0, so a timeout of the database or its user would stay. */
const NO_TIMEOUT_MS = 2_147_483_647;
/** Networks forget connections that are silent for several times as long. */
const LOCK_PING_EVERY_MS = 60_000;

type ClientOptions = postgres.Options<Record<string, never>>;

/**
 * postgres.js would renew the connection after half an hour or more, and a statement would wait for that. PostgreSQL
 * plans a statement once for any number of values, because planning takes longer than running it for a few. It may make
 * the plan while the tables are still empty. The plan must use indexes even then, or it would scan whole tables once
 * they are full.
 */
const DEDICATED: ClientOptions = {
  max_lifetime: null,
  connection: { enable_seqscan: 'off', plan_cache_mode: 'force_generic_plan' },
};

/** postgres.js would renew the connection after half an hour or more, and lose the lock. */
const EXCLUSIVE: ClientOptions = {
  max_lifetime: null,
  connection: {
    statement_timeout: EXCLUSIVE_TIMEOUT_MS,
    idle_in_transaction_session_timeout: EXCLUSIVE_TIMEOUT_MS,
    idle_session_timeout: NO_TIMEOUT_MS,
  },
};

/** For copies of whole tables, which take long if the tables are large. */
const UNLIMITED: ClientOptions = {
  max_lifetime: null,
  connection: {
    statement_timeout: NO_TIMEOUT_MS,
    idle_in_transaction_session_timeout: NO_TIMEOUT_MS,
    lock_timeout: NO_TIMEOUT_MS,
  },
};

const SEVERAL_HOSTS = /^\w+:\/\/[^/?]*,/;

/** Runs queries: the pool, or the one connection of a transaction. */
export type Queries = Pick<PostgresJsDatabase, 'select' | 'insert' | 'update' | 'delete' | 'execute' | '$count'>;

/** Inside a transaction. Functions that must join their caller's transaction take it first. */
export type Tx = Queries & { readonly is_transaction?: true };

/** The address of a database: a URL, or the socket of the embedded server. */
export type DatabaseAddress = { url: string } | EmbeddedPostgres['connection'];

export interface LockOptions {
  /** How long a statement may wait for a lock, before it fails (`isLocked`). Without it, the limit of the statement applies. */
  lock_wait_max_ms?: number | undefined;
}

/** How to wait for an advisory lock. */
export interface LockWait {
  /** Ends the wait, which then throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Called once if another process holds the lock. */
  onWait?: (() => void) | undefined;
}

type DedicatedOptions = Partial<Deadlines> & LockOptions;

export interface Database extends AsyncDisposable {
  /** Maximum number of connections in the pool. */
  pool_max: number;
  /** Runs single statements, each in a transaction of its own. */
  queries: Queries;
  /**
   * Opens a connection for one kind of frequent statements. They wait for no other statements, and PostgreSQL keeps their
   * plans in one process. In the pool they would run on each connection in turn.
   */
  openDedicatedConnection(options?: DedicatedOptions): DedicatedConnection;
  /** Runs a transaction. Repeats it after a deadlock or a serialization failure. */
  transact<Result>(work: (tx: Tx) => Promise<Result>, options?: LockOptions): Promise<Result>;
  /** Returns whether PostgreSQL refused a write because its disk was full, and still does. */
  isFull(): Promise<boolean>;
  /**
   * Listens for notifications on a channel, over a connection of its own. Calls `onConnected` after it has connected, and
   * after it has reconnected, when notifications may have been missed. Returns a function that checks whether its server
   * still answers. If it does not, the check fails, and the connection is replaced.
   */
  listen(
    channel: string,
    onNotification: (payload: string) => void,
    onConnected: () => void,
  ): Promise<() => Promise<void>>;
  /**
   * Runs work under an advisory lock of PostgreSQL, which one process on the database holds at a time. `connection` is the
   * connection that holds it. Throws DATABASE_BUSY if another process holds it for 15 minutes, or PostgreSQL does not
   * answer. If the connection is lost, and with it the lock, `lost` is aborted, the connection is not replaced, and this
   * throws DATABASE_UNAVAILABLE once the work has ended.
   */
  exclusively<Result>(
    lock: number,
    work: (connection: PostgresJsDatabase, lost: AbortSignal) => Promise<Result>,
    waiting?: LockWait,
  ): Promise<Result>;
  /** Opens one connection without deadlines, to copy whole tables. The caller ends it. */
  openCopyConnection(): postgres.Sql;
}

/** The advisory locks. Their numbers are arbitrary, but the same in every release. */
export const LOCKS = {
  migration: 7_263_401,
  first_start: 7_263_402,
  retention: 7_263_404,
  backup: 7_263_405,
  counters: 7_263_406,
};

/** Opens a database. It connects at the first query. */
export function openDatabase(address: DatabaseAddress, pool_max: number, deadlines = DEADLINES): Database {
  const client = connect(address, pool_max);
  let was_full = false;
  const onFailure = (error: unknown) => {
    was_full ||= isDiskFull(error);
  };
  const db = drizzle(limitClient(client, deadlines, { onFailure }));
  const opened: Pick<postgres.Sql, 'end'>[] = [client];
  return {
    pool_max,
    queries: db,
    openDedicatedConnection({ lock_wait_max_ms, ...own_deadlines } = {}) {
      const all_deadlines = { ...deadlines, ...own_deadlines };
      const lock_timeout = lock_wait_max_ms === undefined ? {} : { lock_timeout: lock_wait_max_ms };
      const options = { ...DEDICATED, connection: { ...DEDICATED.connection, ...lock_timeout } };
      const { connection, end } = createReplaceableConnection(
        () => connect(address, 1, options),
        all_deadlines,
        onFailure,
      );
      opened.push({ end });
      return connection;
    },
    transact: (work, { lock_wait_max_ms } = {}) =>
      retryConflicts(() =>
        db.transaction(async (tx) => {
          if (lock_wait_max_ms !== undefined) await limitLockWaits(tx, lock_wait_max_ms);
          return await work(tx);
        }),
      ),
    async isFull() {
      // While the database does not answer, it counts as still full.
      const staysFull = (error: unknown) => isDiskFull(error) || isUnavailable(error);
      if (was_full) was_full = await db.transaction(probeDisk).then(() => false, staysFull);
      return was_full;
    },
    async listen(channel, onNotification, onConnected) {
      const listening = client.listen(channel, onNotification, onConnected);
      const { check } = await limitPromise(listening, { deadline_ms: deadlines.query_ms });
      return async () => {
        await limitQuery(check(), deadlines, {});
      };
    },
    async exclusively(lock, work, waiting = {}) {
      const lost = new AbortController();
      let is_working = false;
      const onclose = () => {
        if (!is_working) return;
        const cause = Object.assign(new Error('the connection that held the lock was lost'), { code: 'LOCK_LOST' });
        lost.abort(new ServiceError('DATABASE_UNAVAILABLE', {}, { cause }));
        void client_of_lock.end({ timeout: 0 });
      };
      const client_of_lock = connect(address, 1, { ...EXCLUSIVE, onclose });
      try {
        await takeLock(drizzle(limitClient(client_of_lock, deadlines)), lock, waiting);
        is_working = true;
        const long_deadlines = { query_ms: EXCLUSIVE_DEADLINE_MS, transaction_ms: EXCLUSIVE_DEADLINE_MS };
        const all_deadlines = { ...deadlines, ...long_deadlines };
        const connection = drizzle(limitClient(client_of_lock, all_deadlines, { is_prepared: false }));
        using _ = pingEvery(LOCK_PING_EVERY_MS, client_of_lock);
        return await work(connection, lost.signal).finally(() => lost.signal.throwIfAborted());
      } finally {
        is_working = false;
        // Does not wait: the work is done, and a lost connection would never end by itself.
        await client_of_lock.end({ timeout: 0 });
      }
    },
    openCopyConnection: () => connect(address, 1, UNLIMITED),
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((one) => one.end({ timeout: CLOSE_WITHIN_S })));
    },
  };
}

/**
 * Takes an advisory lock for long work on this connection. Asks for it by short statements, because one that waits for the
 * lock looks like one that a frozen server never answers.
 */
async function takeLock(connection: PostgresJsDatabase, lock: number, { signal, onWait }: LockWait): Promise<void> {
  let is_waiting = false;
  const give_up_at = performance.now() + EXCLUSIVE_TIMEOUT_MS;
  while (performance.now() < give_up_at) {
    signal?.throwIfAborted();
    const [row] = await connection.execute<{ has_lock: boolean }>(
      sql`select pg_try_advisory_lock(${lock}) as has_lock`,
    );
    if (row?.has_lock) return;
    if (!is_waiting) onWait?.();
    is_waiting = true;
    await Bun.sleep(LOCK_RETRY_EVERY_MS);
  }
  const cause = Object.assign(new Error('another process holds the lock'), { code: 'LOCK_HELD' });
  throw new ServiceError('DATABASE_BUSY', {}, { cause });
}

/** Limits how long a transaction waits for a lock. */
async function limitLockWaits(tx: Tx, wait_max_ms: number): Promise<void> {
  await tx.execute(sql`select set_config('lock_timeout', ${String(wait_max_ms)}, true)`);
}

/** Uses a connection regularly, so that no network forgets it while the work does something else. */
function pingEvery(every_ms: number, client: postgres.Sql): Disposable {
  // If it fails, the connection closes.
  const timer = setInterval(() => void client`select 1`.catch(() => {}), every_ms);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Takes some megabytes of the server's disk and frees them again. */
async function probeDisk(tx: Tx): Promise<void> {
  await tx.execute(sql`create temporary table room on commit drop as select generate_series(1, 100000)`);
}

function connect(address: DatabaseAddress, max: number, { connection, ...more }: ClientOptions = {}): postgres.Sql {
  const options: ClientOptions = {
    max,
    ...more,
    connect_timeout: CONNECT_TIMEOUT_S,
    // Notices such as "already exists, skipping" do not belong in the log.
    onnotice: () => {},
    // postgres.js's own backoff grows to 20 s.
    backoff: (retries) => Math.min(1, 0.05 * 2 ** retries),
    connection: {
      application_name: 'muster',
      statement_timeout: STATEMENT_TIMEOUT_MS,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
      // Queries are short: to compile one takes longer than to run it.
      jit: 'off',
      ...connection,
    },
  };
  if (!('url' in address)) return postgres({ ...address, ...options });
  // With several hosts, postgres.js must open the sockets, because it chooses the host.
  const own_socket = SEVERAL_HOSTS.test(address.url) ? {} : { socket: openSocket };
  return postgres(address.url, { ...options, ...own_socket });
}
