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
  let written: Query | undefined;
  const writeOnce = () => new PgDialect().sqlToQuery(write(placeOf));

  return (values) => {
    written ??= writeOnce();
    const fill = (parameter: unknown) => (is(parameter, Placeholder) ? Reflect.get(values, parameter.name) : parameter);
    return new WrittenStatement({ sql: written.sql, params: written.params.map(fill) });
  };
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
