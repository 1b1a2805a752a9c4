import { type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';

/**
 * Returns the condition that a column has one of some values. They are one parameter, so that there is one prepared
 * statement, not one for each number of values as with `in (…)`.
 */
export function isAnyOf(column: PgColumn, values: readonly string[]): SQL {
  return sql`${column} = any(${sql.param(values)}::${sql.raw(column.getSQLType())}[])`;
}
