import type { Database } from '../../../src/platform/database/database.ts';

/** A result that has arrived from the database, and is not passed on yet. */
interface HeldResult {
  /** Resolves once the result has arrived. */
  reached: Promise<void>;
  /** Passes the result on. */
  release(): void;
}

/** Returns the database with a function that holds the result of the next query that a method begins. */
export function holdResults(
  database: Database,
  method: 'select' | 'execute' = 'select',
): { database: Database; hold(options?: { skip: number }): HeldResult } {
  let next: (() => Promise<void>) | undefined;
  /** How many queries are passed on before the next one is held. */
  let skipped = 0;
  const queries = new Proxy(database.queries, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (name !== method) return value;
      return (...given: unknown[]) => {
        const query = value.apply(target, given);
        skipped -= 1;
        if (skipped >= 0 || !next) return query;
        const wait = next;
        next = undefined;
        return delay(query, wait);
      };
    },
  });
  return {
    database: { ...database, queries },
    hold({ skip } = { skip: 0 }) {
      skipped = skip;
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
