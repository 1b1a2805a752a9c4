import type { Database } from '../../../src/platform/database/database.ts';

/** A query that has not been sent to the database yet, or its result that has arrived and is not passed on yet. */
interface Held {
  /** Resolves once the query is to be sent, or its result has arrived. */
  reached: Promise<void>;
  /** Sends the query, or passes the result on. */
  release(): void;
}

interface HoldOptions {
  /** How many queries are passed on before the one that is held. */
  skip?: number;
  /** By default its result. */
  what?: 'query' | 'result';
}

/** Returns the database with a function that holds the next query that a method begins, or its result. */
export function holdResults(
  database: Database,
  method: 'select' | 'execute' = 'select',
): { database: Database; hold(options?: HoldOptions): Held } {
  let next: Wait | undefined;
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
    hold({ skip = 0, what = 'result' } = {}) {
      skipped = skip;
      const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const wait = async () => {
        reached.resolve();
        await released.promise;
      };
      next = { what, wait };
      return { reached: reached.promise, release: released.resolve };
    },
  };
}

interface Wait {
  what: 'query' | 'result';
  wait(): Promise<void>;
}

/** Returns a query that is sent, or whose result is passed on, after a wait, like all queries that are built from it. */
function delay<Query extends object>(query: Query, { what, wait }: Wait): Query {
  return new Proxy(query, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]) => {
        if (name !== 'then') return delay(value.apply(target, given), { what, wait });
        const [resolve, reject] = given;
        const send = async () => {
          if (what === 'query') await wait();
          const rows = await target;
          if (what === 'result') await wait();
          return rows;
        };
        return send().then(resolve as never, reject as never);
      };
    },
  });
}
