import { is, Placeholder, type SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { assert } from '../errors.ts';

const PARAMETER = /\$\d+/;

/** What stands for a value of a statement until there is one. */
type Value<Values> = (name: keyof Values & string) => SQL;

/**
 * A statement whose text is written once, for those that are long and asked for with every request: putting one together
 * of its parts costs more than everything else that is done with it here. Gives what makes it of its values.
 */
export function createStatement<Values extends object>(write: (value: Value<Values>) => SQL): (values: Values) => SQL {
  let written: { pieces: SQL[]; parameters: unknown[] } | undefined;

  function writeOnce() {
    const query = new PgDialect().sqlToQuery(write((name) => sql`${sql.placeholder(name)}`));
    const pieces = query.sql.split(PARAMETER).map((piece) => sql.raw(piece));
    assert(pieces.length === query.params.length + 1, 'between two pieces of the text stands one parameter');
    return { pieces, parameters: query.params };
  }

  return (values) => {
    written ??= writeOnce();
    const fill = (parameter: unknown) => (is(parameter, Placeholder) ? Reflect.get(values, parameter.name) : parameter);
    const filled = written.parameters.map((parameter) => sql.param(fill(parameter)));
    return sql.join(written.pieces.flatMap((piece, index) => (index === 0 ? [piece] : [filled[index - 1], piece])));
  };
}
