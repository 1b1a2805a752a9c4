import { sql } from 'drizzle-orm';
import type { Queries } from '../../src/platform/database/database.ts';

/**
 * Inserts copies of a server with changes to their columns. Each was created a second after the one before it.
 */
export async function copyServer(
  queries: Queries,
  server_id: string,
  count: number,
  changes: object = {},
): Promise<void> {
  await queries.execute(sql`
    insert into servers select (jsonb_populate_record(server, jsonb_build_object(
      'server_id', gen_random_uuid(), 'created_at', created_at + number * interval '1 s'
    ) || ${JSON.stringify(changes)}::jsonb)).*
    from servers as server cross join generate_series(1, ${count}) as number
    where server_id = ${server_id}`);
}
