import { type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';

/**
 * Returns a condition: a column has one of the values. They are one parameter, so that there is one prepared statement for
 * any number of values, unlike with `in (…)`.
 */
export function isAnyOf(column: PgColumn, values: readonly string[]): SQL {
  return sql`${column} = any(${sql.param(values)}::${sql.raw(column.getSQLType())}[])`;
}
