import { is, Placeholder, type Query, SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import type { Queries } from './database.ts';

/** Returns the placeholder of a value in a statement. */
type Value<Values> = (name: keyof Values & string) => SQL;

const placeholderOf = (name: string): SQL => sql`${sql.placeholder(name)}`;

/** A statement with a finished text, which Drizzle does not build again. */
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
 * Returns a function that fills values into a statement. The text is built once, because building a long text costs more
 * than anything else that this process does for a frequent request.
 */
export function createStatement<Values extends object>(write: (value: Value<Values>) => SQL): (values: Values) => SQL {
  let written: { text: string; parameters: ((values: Values) => unknown)[] } | undefined;

  function writeOnce() {
    const { sql: text, params } = new PgDialect().sqlToQuery(write(placeholderOf));
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

/** Escapes in JSON that PostgreSQL's arrays do not have. Both escape quotes and backslashes in the same way. */
const ESCAPE_OF_JSON = /\\[^"\\]/;

/**
 * Writes a list in PostgreSQL's syntax of arrays, which is JSON except for the brackets and control characters. Leaves a
 * list with control characters to the driver, which takes several times as long.
 */
function toParameter(value: unknown): unknown {
  if (!Array.isArray(value)) return value;
  const text = JSON.stringify(value);
  return ESCAPE_OF_JSON.test(text) ? value : `{${text.slice(1, -1)}}`;
}

/** A query of Drizzle's builder that has not run. */
interface Preparable<Rows> {
  prepare(name: string): { execute(values: Record<string, unknown>): Promise<Rows> };
}

/** Returns a function that runs a query of Drizzle's builder, which decodes the rows. Builds the query once. */
export function createQuery<Values extends Record<string, unknown>, Rows>(
  build: (queries: Queries, value: Value<Values>) => Preparable<Rows>,
): (queries: Queries, values: Values) => Promise<Rows> {
  const built = new WeakMap<Queries, ReturnType<Preparable<Rows>['prepare']>>();

  return (queries, values) => {
    let query = built.get(queries);
    if (!query) {
      // The driver chooses the name.
      query = build(queries, placeholderOf).prepare('');
      built.set(queries, query);
    }
    return query.execute(values);
  };
}
