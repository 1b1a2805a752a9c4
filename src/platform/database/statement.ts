import { is, Placeholder, type Query, SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import type { Queries } from './database.ts';

/** What stands for a value of a statement until there is one. */
type Value<Values> = (name: keyof Values & string) => SQL;

const placeOf = (name: string): SQL => sql`${sql.placeholder(name)}`;

/** A statement whose text Drizzle takes as it is. */
class WrittenStatement extends SQL {
  readonly #query: Query;

  constructor(query: Query) {
    super([]);
    this.#query = query;
  }

  override toQuery(): Query {
    return this.#query;
  }
}

/**
 * A statement whose text is written once, for those that are long and asked for with every request: putting one together
 * of its parts costs more than everything else that is done with it here. Gives what makes it of its values.
 */
export function createStatement<Values extends object>(write: (value: Value<Values>) => SQL): (values: Values) => SQL {
  let written: { text: string; parameters: ((values: Values) => unknown)[] } | undefined;

  function writeOnce() {
    const { sql: text, params } = new PgDialect().sqlToQuery(write(placeOf));
    const parameters = params.map((parameter) => {
      if (!is(parameter, Placeholder)) return () => parameter;
      const { name } = parameter;
      return (values: Values) => toParameter(Reflect.get(values, name));
    });
    return { text, parameters };
  }

  return (values) => {
    written ??= writeOnce();
    const { text, parameters } = written;
    return new WrittenStatement({ sql: text, params: parameters.map((read) => read(values)) });
  };
}

/** What only JSON escapes so. PostgreSQL writes quotes and backslashes in the same way. */
const ESCAPE_OF_JSON = /\\[^"\\]/;

/**
 * Lists are given to the driver as PostgreSQL writes arrays, which is how JSON writes them but for the brackets and for
 * control characters: a list with such is left to the driver, which takes several times as long.
 */
function toParameter(value: unknown): unknown {
  if (!Array.isArray(value)) return value;
  const text = JSON.stringify(value);
  return ESCAPE_OF_JSON.test(text) ? value : `{${text.slice(1, -1)}}`;
}

/** A query of Drizzle's builder, before it is run. */
interface Preparable<Rows> {
  prepare(name: string): { execute(values: Record<string, unknown>): Promise<Rows> };
}

/** The same for a query of Drizzle's builder, which also makes of rows what their table says. Gives what runs it. */
export function createQuery<Values extends Record<string, unknown>, Rows>(
  build: (queries: Queries, value: Value<Values>) => Preparable<Rows>,
): (queries: Queries, values: Values) => Promise<Rows> {
  const built = new WeakMap<Queries, ReturnType<Preparable<Rows>['prepare']>>();

  return (queries, values) => {
    let query = built.get(queries);
    if (!query) {
      // The driver makes names of its own.
      query = build(queries, placeOf).prepare('');
      built.set(queries, query);
    }
    return query.execute(values);
  };
}
