import { sql } from 'drizzle-orm';
import { openDatabase } from '../../src/platform/database/database.ts';
import type { TestService } from '../support/service.ts';

export type Snapshots = ReturnType<typeof openSnapshots>;

/** These change without a request: beats of machines, usage, counters of each minute. Refusals have receipts. */
const ALWAYS_CHANGING = [
  'machines',
  'receipts',
  'server_meters',
  'server_samples',
  'server_usage',
  'minute_counters',
  'hour_counters',
];
/** The rows of topics that announce this usage, these counters and receipts, as text. */
const ALWAYS_CHANGING_TOPICS = '^\\("?(usage|counters-of|receipts-of):';

/** Takes snapshots of a service's database. */
export function openSnapshots({ database_address }: Pick<TestService, 'database_address'>) {
  const database = openDatabase(database_address, 1);
  const { queries } = database;
  return {
    /** Returns, for each table, the number of its rows and a checksum of them. */
    async take(): Promise<Record<string, string>> {
      const tables = await queries.execute<{ name: string }>(sql`
        select tablename as name from pg_tables where schemaname = 'public' order by tablename`);
      const selects = [...tables]
        .filter(({ name }) => !ALWAYS_CHANGING.includes(name))
        .map(
          ({ name }) => sql`
            select ${name} as name, count(*) || ' ' || coalesce(md5(string_agg(row_sum, '' order by row_sum)), '') as sum
            from (select md5(content::text) as row_sum from ${sql.identifier(name)} as content
              where content::text !~ ${ALWAYS_CHANGING_TOPICS}) as row_sums`,
        );
      const sums = await queries.execute<{ name: string; sum: string }>(sql.join(selects, sql` union all `));
      return Object.fromEntries([...sums].map(({ name, sum }) => [name, sum]));
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}
