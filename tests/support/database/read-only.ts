import { sql } from 'drizzle-orm';
import { type Database, type DatabaseAddress, openDatabase } from '../../../src/platform/database/database.ts';
import type { DedicatedConnection } from '../../../src/platform/database/dedicated-connection.ts';
import { toServiceError } from '../../../src/platform/database/failures.ts';

/** Ways to make new connections read-only; an open connection keeps its setting. */
export type ReadOnlySetting = 'database' | 'role in database';

/** The administrator of a database, with a connection that can always write. */
export interface DatabaseAdmin extends AsyncDisposable {
  database: Database;
  /** Makes new connections read-only. Existing ones stay as they are. */
  setReadOnly(setting: ReadOnlySetting): Promise<void>;
  /** Makes new connections read-only, and ends the existing ones. */
  forbidWrites(setting: ReadOnlySetting): Promise<void>;
  /** Lets new connections write. Existing ones stay as they are. */
  allowWrites(setting: ReadOnlySetting): Promise<void>;
}

/** Connects as the administrator of the database at an address. */
export async function openDatabaseAdmin(address: DatabaseAddress): Promise<DatabaseAdmin> {
  const database = openDatabase(address, 1);
  const run = (statement: string) => database.queries.execute(sql.raw(statement));
  const [names] = await database.queries.execute<{ role: string; name: string }>(
    sql`select quote_ident(current_user) as role, quote_ident(current_database()) as name`,
  );
  const targets: Record<ReadOnlySetting, string> = {
    database: `database ${names?.name}`,
    'role in database': `role ${names?.role} in database ${names?.name}`,
  };
  async function setReadOnly(setting: ReadOnlySetting): Promise<void> {
    await run(`alter ${targets[setting]} set default_transaction_read_only = on`);
  }
  return {
    database,
    setReadOnly,
    async forbidWrites(setting) {
      await setReadOnly(setting);
      await run(
        `select pg_terminate_backend(pid, 5000) from pg_stat_activity
        where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`,
      );
    },
    async allowWrites(setting) {
      await run(`alter ${targets[setting]} reset default_transaction_read_only`);
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

/** Returns 'written', or the code of the failure of a statement. */
export async function outcomeOfWrite(queries: DedicatedConnection): Promise<string> {
  return await queries.execute(sql`insert into notes values ('written')`).then(
    () => 'written',
    (error: unknown) => toServiceError(error)?.code ?? String(error),
  );
}
