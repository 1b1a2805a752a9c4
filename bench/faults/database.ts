import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../src/platform/database/database.ts';
import type { Home } from '../../tests/support/program.ts';

/** Connects to a service's embedded PostgreSQL as its owner, beside the service's own connections. */
export function openDatabaseOf({ data_directory }: Home) {
  const path = join(data_directory, 'postgres/socket/.s.PGSQL.5432');
  const database = openDatabase({ path, user: 'muster', database: 'postgres' }, 1);
  const execute = async (statement: string) => [
    ...(await database.queries.execute<Record<string, unknown>>(sql.raw(statement))),
  ];
  return {
    queries: database.queries,
    execute,
    /** Returns the one number that a statement selects. */
    count: async (statement: string): Promise<number> => Number(Object.values((await execute(statement))[0] ?? {})[0]),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}
