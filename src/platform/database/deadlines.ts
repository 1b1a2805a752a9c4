import type postgres from 'postgres';
import { ServiceError } from '../errors.ts';

export interface Deadlines {
  /** Includes the wait for a connection, and for a server that does not answer, unlike PostgreSQL's statement timeout. */
  query_ms: number;
  /** How long a transaction may wait for a connection. */
  pool_wait_ms: number;
  transaction_ms: number;
}

export const DEADLINES: Deadlines = { query_ms: 12_000, pool_wait_ms: 2_000, transaction_ms: 20_000 };

/**
 * If a cancelled statement has no answer after this time, its server is silent, as after a power failure. The
 * connection is then dropped, so that a new one can be opened: the operating system would give the old one up only
 * after a quarter of an hour.
 */
const CANCELLED_WITHIN_MS = 2_000;

/** How a client with deadlines runs statements. */
interface RunOptions extends Listeners {
  /** False for texts of several statements, which cannot be prepared. By default true. */
  is_prepared?: boolean;
}

interface Listeners {
  /** Called when a statement missed its deadline. */
  onLate?: () => void;
  /** Called when a statement or a transaction failed. */
  onFailure?: (error: unknown) => void;
}

type Work = (tx: postgres.TransactionSql) => Promise<unknown>;

/**
 * Returns the client with deadlines, after which a call fails with DATABASE_BUSY; postgres.js itself waits for a
 * connection without limit. As after a lost connection, a failed call may have changed the database or not.
 *
 * Statements are prepared once for each connection, because an unprepared one with parameters costs postgres.js a second
 * round trip to learn their types. So there must be few different texts, and a list is sent as one array parameter.
 */
export function limitClient(
  client: postgres.Sql,
  deadlines: Deadlines,
  { is_prepared: prepare = true, ...listeners }: RunOptions = {},
): postgres.Sql {
  return replace(client, {
    unsafe: (text: string, parameters: never[]) =>
      limitQuery(client.unsafe(text, parameters, { prepare }), deadlines, listeners),
    begin: (work: Work) => transactWithDeadlines({ client, work, deadlines, listeners, prepare }),
  });
}

/** Returns a query with a deadline, for both ways in which Drizzle runs it: it awaits the query, or its `values()`. */
export function limitQuery(
  query: postgres.PendingQuery<postgres.Row[]>,
  { query_ms }: Deadlines,
  { onLate, onFailure }: Listeners,
) {
  const cancel = () => {
    query.cancel();
    dropConnectionAfter(CANCELLED_WITHIN_MS, query);
    onLate?.();
  };
  const call_deadline = { deadline_ms: query_ms, onLate: cancel, onFailure };
  return {
    values: () => limitPromise(query.values(), call_deadline),
    // biome-ignore lint/suspicious/noThenProperty: Drizzle awaits the query itself.
    then: (resolve: (rows: postgres.Row[]) => unknown, reject: (error: unknown) => unknown) =>
      limitPromise(query, call_deadline).then(resolve, reject),
  };
}

interface Transaction {
  client: postgres.Sql;
  work: Work;
  deadlines: Deadlines;
  listeners: Listeners;
  prepare: boolean;
}

async function transactWithDeadlines({ client, work, deadlines, listeners, prepare }: Transaction): Promise<unknown> {
  const { query_ms, pool_wait_ms, transaction_ms } = deadlines;
  const { onFailure } = listeners;
  const begun = Promise.withResolvers<void>();
  let is_given_up = false;
  const transaction = client.begin((tx) => {
    // The caller already got an error, so the transaction must do nothing.
    if (is_given_up) throw busy();
    begun.resolve();
    return work(
      replace(tx, { unsafe: (text: string, parameters: never[]) => tx.unsafe(text, parameters, { prepare }) }),
    );
  });
  // Ends the wait if the transaction fails before it begins.
  transaction.catch(begun.reject);
  const giveUp = () => {
    is_given_up = true;
    transaction.cancel();
    // It may wait behind statements of others on its connection, which have their own deadlines.
    dropConnectionAfter(query_ms + CANCELLED_WITHIN_MS, transaction);
  };
  await limitPromise(begun.promise, { deadline_ms: pool_wait_ms, onLate: giveUp, onFailure });
  const dropIfSilent = () => dropConnectionAfter(CANCELLED_WITHIN_MS, transaction);
  return await limitPromise(transaction, { deadline_ms: transaction_ms, onLate: dropIfSilent, onFailure });
}

/** Closes the connection of a statement or transaction that has not ended after a time. */
function dropConnectionAfter(after_ms: number, late: { dropConnection(): void }): void {
  setTimeout(() => late.dropConnection(), after_ms).unref();
}

interface CallDeadline extends Listeners {
  deadline_ms: number;
}

/** Returns the result of work with a deadline, after which it fails with DATABASE_BUSY. */
export async function limitPromise<Value>(
  promise: PromiseLike<Value>,
  { deadline_ms, onLate, onFailure }: CallDeadline,
): Promise<Value> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    onLate?.();
    late.reject(busy());
  }, deadline_ms);
  try {
    return await Promise.race([promise, late.promise]);
  } catch (error) {
    onFailure?.(error);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

export function busy(): ServiceError<'DATABASE_BUSY'> {
  return new ServiceError('DATABASE_BUSY', {});
}

/** Returns the object with some of its members replaced. */
function replace<Target extends object>(target: Target, replaced: Record<string, unknown>): Target {
  return new Proxy(target, {
    get: (original, key) => (typeof key === 'string' && key in replaced ? replaced[key] : Reflect.get(original, key)),
  });
}
