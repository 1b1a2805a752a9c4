import { is, Placeholder, type Query, SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';

/** What stands for a value of a statement until there is one. */
type Value<Values> = (name: keyof Values & string) => SQL;

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
  const writeOnce = () => new PgDialect().sqlToQuery(write((name) => sql`${sql.placeholder(name)}`));

  return (values) => {
    written ??= writeOnce();
    const fill = (parameter: unknown) => (is(parameter, Placeholder) ? Reflect.get(values, parameter.name) : parameter);
    return new WrittenStatement({ sql: written.sql, params: written.params.map(fill) });
  };
}
