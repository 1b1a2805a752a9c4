import type { Database } from '../../../src/platform/database/database.ts';

/** A result that has arrived from the database, and is not passed on yet. */
interface HeldResult {
  /** Resolves once the result has arrived. */
  reached: Promise<void>;
  /** Passes the result on. */
  release(): void;
}

/** Returns the database with a function that holds the result of the next select. */
export function holdResults(database: Database): { database: Database; hold(): HeldResult } {
  let next: (() => Promise<void>) | undefined;
  const select = (...columns: Parameters<Database['queries']['select']>) => {
    const wait = next;
    next = undefined;
    const query = database.queries.select(...columns);
    return wait ? delay(query, wait) : query;
  };
  const queries = new Proxy(database.queries, {
    get: (target, name) => (name === 'select' ? select : Reflect.get(target, name)),
  });
  return {
    database: { ...database, queries },
    hold() {
      const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      next = async () => {
        reached.resolve();
        await released.promise;
      };
      return { reached: reached.promise, release: released.resolve };
    },
  };
}

/** Returns a query whose result is passed on after a wait, like all queries that are built from it. */
function delay<Query extends object>(query: Query, wait: () => Promise<void>): Query {
  return new Proxy(query, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]) => {
        if (name !== 'then') return delay(value.apply(target, given), wait);
        const [resolve, reject] = given;
        return Promise.resolve(target)
          .then(async (rows) => await wait().then(() => rows))
          .then(resolve as never, reject as never);
      };
    },
  });
}
