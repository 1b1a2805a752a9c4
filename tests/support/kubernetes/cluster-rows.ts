import { sql } from 'drizzle-orm';
import { NO_HOLDER } from '../../../src/features/machines/tables.ts';
import type { Database } from '../../../src/platform/database/database.ts';

/** Returns the machine id of the process that holds the cluster; undefined if none does. */
export async function readHolder({ queries }: Database): Promise<string | undefined> {
  const [row] = await queries.execute<{ node_id: string }>(sql`
    select process.node_id from machines as process
    join machines as cluster on cluster.node_id = process.cluster_id and cluster.place = process.place
    where cluster.state = 'up' and cluster.holder <> ${NO_HOLDER}::uuid`);
  return row?.node_id;
}

interface ServerEnd extends Record<string, unknown> {
  exit_code: number | null;
  exit_signal: string | null;
  failure: string | null;
  has_lost_machine: boolean;
}

/** Returns how a server ended; undefined while it has not. */
export async function readEnd({ queries }: Database, server_id: string): Promise<ServerEnd | undefined> {
  const [end] = await queries.execute<ServerEnd>(sql`
    select exit_code, exit_signal, failure, has_lost_machine from servers
    where server_id = ${server_id} and ended_at is not null`);
  return end;
}
