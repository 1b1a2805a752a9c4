import { sql } from 'drizzle-orm';
import type { Database } from '../../../src/platform/database/database.ts';
import { waitFor } from '../wait.ts';

/** A change of a row. */
export interface RowChange {
  table: string;
  is: 'insert' | 'update';
  /** A condition on the row, `new`, and on what it was before, `old`. */
  when: string;
}

/** A transaction that PostgreSQL holds before it commits. Disposing of it rolls it back. */
export interface HeldRows extends AsyncDisposable {
  /** Resolves once a transaction is held. */
  held: Promise<void>;
}

/** Lets PostgreSQL hold all transactions that change a row in such a way. */
export async function holdRows({ queries }: Database, { table, is, when }: RowChange): Promise<HeldRows> {
  await queries.execute(
    sql.raw(`
      create function hold_row() returns trigger language plpgsql as $$ begin perform pg_sleep(3600); return null; end $$;
      create trigger hold_row after ${is} on ${table} for each row when (${when}) execute function hold_row()`),
  );
  const isHeld = async () => {
    const [row] = await queries.execute<{ count: number }>(sql`
      select count(*)::int as count from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`);
    return row !== undefined && row.count > 0;
  };
  return {
    held: waitFor(isHeld, `a change of ${table} to be held`).then(() => {}),
    async [Symbol.asyncDispose]() {
      await queries.execute(sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event = 'PgSleep'`);
      await queries.execute(sql.raw('drop function hold_row cascade'));
    },
  };
}
