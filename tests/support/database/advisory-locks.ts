import { sql } from 'drizzle-orm';
import type { Database } from '../../../src/platform/database/database.ts';
import { waitFor } from '../wait.ts';

/** Connections that ask for an advisory lock again. The one that holds it has asked once. */
const WAITING = sql`
  select from pg_stat_activity
  where datname = current_database() and starts_with(query, 'select pg_try_advisory_lock')
    and query_start > backend_start + interval '1 s'`;

/** Waits until a program waits for an advisory lock of the database. */
export async function waitForLockWaiter({ queries }: Database): Promise<void> {
  await waitFor(async () => (await queries.execute(WAITING)).length > 0, 'a program to wait for the lock');
}
