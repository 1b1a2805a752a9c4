import type postgres from 'postgres';

type Work = (tx: postgres.TransactionSql) => Promise<unknown>;
type Statement = postgres.PendingQuery<postgres.Row[]>;

/**
 * The same client, but a transaction ends with its connection. postgres.js (3.4.9) sends what comes later over the
 * connection that has taken the lost one's place, each statement on its own and for good, or throws where nobody can
 * catch it. Here such statements are refused, and the driver does not hear how the work of a lost transaction ended:
 * it would roll it back, or commit it, in the same way.
 */
export function withWholeTransactions(client: postgres.Sql): postgres.Sql {
  return replace(client, { begin: (work: Work) => begin(client, work) });
}

async function begin(client: postgres.Sql, work: Work): Promise<unknown> {
  let ended: { cause: unknown } | undefined;

  async function run<Result>(statement: () => PromiseLike<Result>): Promise<Result> {
    if (ended) throw ended.cause;
    try {
      return await statement();
    } catch (error) {
      // A lost connection fails its statement first and its transaction a moment later: nothing goes on in between.
      await new Promise((resolve) => setImmediate(resolve));
      throw error;
    }
  }

  /** Drizzle awaits a statement as it is, or its `values()`. */
  function watchOver(statement: Statement) {
    return {
      values: () => run(() => statement.values()),
      // biome-ignore lint/suspicious/noThenProperty: a postgres.js query is awaited as it is.
      then: (resolve: (rows: postgres.Row[]) => unknown, reject: (error: unknown) => unknown) =>
        run(() => statement).then(resolve, reject),
    };
  }

  const transaction = client.begin(async (tx) => {
    const unsafe = (...call: Parameters<typeof tx.unsafe>) => watchOver(tx.unsafe(...call));
    try {
      return await work(replace(tx, { unsafe }));
    } finally {
      if (ended) await new Promise(() => {});
    }
  });
  try {
    const result = await transaction;
    ended = { cause: new Error('broken promise: a statement after the end of its transaction') };
    return result;
  } catch (cause) {
    ended = { cause };
    throw cause;
  }
}

/** The same object with some of its members replaced. */
export function replace<Target extends object>(target: Target, replaced: Record<string, unknown>): Target {
  return new Proxy(target, {
    get: (original, key) => (typeof key === 'string' && key in replaced ? replaced[key] : Reflect.get(original, key)),
  });
}
