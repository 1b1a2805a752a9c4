import { randomInt } from 'node:crypto';
import { and, eq, getTableColumns, gt, gte, lt, or, sql } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import { isUp } from '../machines/machines.ts';
import { gatewayBatches, gatewayTraffic, type TrafficCounts } from './tables.ts';

const MACHINES_MAX = 1_000;
const SUMS = ['requests', 'sockets', 'connections', 'open', 'received_bytes', 'sent_bytes'] as const;

/** What a machine has counted, by server. */
export interface Batch {
  /** One more than that of the process's batch before. */
  number: number;
  counted: ReadonlyMap<string, TrafficCounts>;
}

/**
 * Adds a batch to the sums of a machine. Adds nothing if its process has stored it or a later one already, or if another
 * process has begun to count for the machine since.
 */
export async function addTraffic(queries: Queries, node_id: string, { number, counted }: Batch): Promise<void> {
  const rows = [...counted].map(([server_id, counts]) => ({ server_id, ...counts }));
  const added = SUMS.map((name) => {
    const column = sql.identifier(name);
    return sql`${column} = ${gatewayTraffic}.${column} + excluded.${column}`;
  });
  await queries.execute(sql`
    with begun as (
      update ${gatewayBatches} set batch = ${number}::bigint
      where node_id = ${node_id}::uuid and batch < ${number}::bigint and batch >= ${startOf(number)}::bigint
      returning batch
    )
    insert into ${gatewayTraffic}
      (server_id, node_id, requests, sockets, connections, open, received_bytes, sent_bytes, answers)
    select server_id, ${node_id}::uuid, requests, sockets, connections, open, received_bytes, sent_bytes, answers
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as counted (
      server_id uuid, requests bigint, sockets bigint, connections bigint, open integer,
      received_bytes bigint, sent_bytes bigint, answers bigint[]
    )
    where (select count(*) from begun) > 0 and exists (select from servers where servers.server_id = counted.server_id)
    order by server_id
    on conflict (server_id, node_id) do update set ${sql.join(added, sql`, `)},
      answers = array(
        select one + other from unnest(${gatewayTraffic}.answers, excluded.answers) with ordinality as pair (one, other, number)
        order by number
      )`);
}

/** The batches of one process; more than it ever stores. */
const BATCHES_MAX = 2 ** 26;

/** Returns the number before the first batch of a process. No other process of a machine has these numbers. */
export const randomStart = (): number => randomInt(2 ** 26) * BATCHES_MAX;

/** Returns the start of the process that has a number. */
const startOf = (number: number): number => number - (number % BATCHES_MAX);

/**
 * Records that a process begins to count for a machine: batches of earlier ones add nothing any more, also of one that still
 * runs. Changes nothing if the process has begun already.
 */
export async function beginBatches(queries: Queries, node_id: string, start: number): Promise<void> {
  const { batch } = gatewayBatches;
  await queries
    .insert(gatewayBatches)
    .values({ node_id, batch: start })
    .onConflictDoUpdate({
      target: gatewayBatches.node_id,
      set: { batch: start },
      setWhere: or(lt(batch, start), gte(batch, start + BATCHES_MAX)),
    });
}

/** Records that a machine has no open connections. */
export async function clearOpen(queries: Queries, node_id: string): Promise<void> {
  await queries
    .update(gatewayTraffic)
    .set({ open: 0 })
    .where(and(eq(gatewayTraffic.node_id, node_id), gt(gatewayTraffic.open, 0)));
}

/**
 * Returns the traffic of a server, by machine. A machine that was declared lost or stopped has no open connections. Its
 * count stays, because it goes on from there if it returns.
 */
export async function selectTraffic(queries: Queries, server_id: string): Promise<TrafficCounts[]> {
  return await queries
    .select({
      ...getTableColumns(gatewayTraffic),
      open: sql<number>`case when ${isUp(gatewayTraffic.node_id)} then ${gatewayTraffic.open} else 0 end`,
    })
    .from(gatewayTraffic)
    .where(eq(gatewayTraffic.server_id, server_id))
    .orderBy(gatewayTraffic.node_id)
    .limit(MACHINES_MAX);
}
