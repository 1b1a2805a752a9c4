import { sql } from 'drizzle-orm';
import { openDatabase } from '../../src/platform/database/database.ts';
import type { TestService } from '../support/service.ts';

export type Snapshots = ReturnType<typeof openSnapshots>;

/** What running servers use is written down while nobody asks for anything; refusals have receipts. */
const MOVING = ['receipts', 'server_meters', 'server_usage'];

/** Looks at everything in a service's database. */
export function openSnapshots({ database_address }: Pick<TestService, 'database_address'>) {
  const database = openDatabase(database_address, 1);
  const { queries } = database;
  return {
    /** How many rows each table has, and a sum of all that is in them. */
    async take(): Promise<Record<string, string>> {
      const tables = await queries.execute<{ name: string }>(sql`
        select tablename as name from pg_tables where schemaname = 'public' order by tablename`);
      const looks = [...tables]
        .filter(({ name }) => !MOVING.includes(name))
        .map(
          ({ name }) => sql`
            select ${name} as name, count(*) || ' ' || coalesce(md5(string_agg(row_sum, '' order by row_sum)), '') as sum
            from (select md5(content::text) as row_sum from ${sql.identifier(name)} as content) as row_sums`,
        );
      const sums = await queries.execute<{ name: string; sum: string }>(sql.join(looks, sql` union all `));
      return Object.fromEntries([...sums].map(({ name, sum }) => [name, sum]));
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}
