import { sql } from 'drizzle-orm';
import type { Queries } from '../../src/platform/database/database.ts';

/** Records that a lobby's server has started, for servers that no machine runs. Only such a server's call is accepted. */
export async function recordStart(queries: Queries, lobby_id: string, at: Date): Promise<void> {
  await queries.execute(sql`
    update servers set started_at = ${at.toISOString()}::timestamptz from lobbies
    where lobbies.lobby_id = ${lobby_id} and servers.server_id = lobbies.server_id and servers.started_at is null`);
}
