import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../src/platform/database/database.ts';
import type { Home } from '../../tests/support/program.ts';

/** A connection to the embedded PostgreSQL of a service, beside its own, as its owner. */
export function openDatabaseOf({ data_directory }: Home) {
  const path = join(data_directory, 'postgres/socket/.s.PGSQL.5432');
  const database = openDatabase({ path, user: 'muster', database: 'postgres' }, 1);
  const execute = async (statement: string) => [
    ...(await database.queries.execute<Record<string, unknown>>(sql.raw(statement))),
  ];
  return {
    queries: database.queries,
    execute,
    /** The only number that a statement gives. */
    count: async (statement: string): Promise<number> => Number(Object.values((await execute(statement))[0] ?? {})[0]),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}
