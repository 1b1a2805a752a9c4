import { and, desc, eq, getTableColumns, lt, sql } from 'drizzle-orm';
import type { Queries } from '../../../../platform/database/database.ts';
import { deleteOldRows } from '../../../../platform/database/old-rows.ts';
import { bump } from '../../../../platform/watch/versions.ts';
import { topics } from '../../../topics.ts';
import { receipts } from '../../tables.ts';

const LISTED_MAX = 64;
const DELETED_AT_ONCE_MAX = 5_000;

export type ReceiptRow = typeof receipts.$inferSelect;

/** Writes receipts, and wakes the watchers of their namespaces. */
export async function insertReceipts(queries: Queries, rows: ReceiptRow[]): Promise<void> {
  const namespace_ids = [...new Set(rows.map(({ namespace_id }) => namespace_id))];
  // One array per column, so that the text of the statement does not depend on the number of rows. Moments are texts,
  // because Drizzle does not encode dates in arrays.
  const column = (values: string[]) => sql.param(values);
  await queries.execute(sql`
    with ${bump(namespace_ids.map(topics.receiptsOf))}
    insert into ${receipts} (ray_id, namespace_id, create_ts, receipt)
    select * from unnest(
      ${column(rows.map(({ ray_id }) => ray_id))}::uuid[],
      ${column(rows.map(({ namespace_id }) => namespace_id))}::uuid[],
      ${column(rows.map(({ create_ts }) => create_ts.toISOString()))}::text[]::timestamptz[],
      ${column(rows.map(({ receipt }) => JSON.stringify(receipt)))}::text[]::jsonb[]
    )
    where (select count(*) from bumped) > 0
    on conflict do nothing`);
}

export async function selectReceipt(
  queries: Queries,
  namespace_id: string,
  ray_id: string,
): Promise<ReceiptRow | undefined> {
  const [row] = await queries
    .select()
    .from(receipts)
    .where(and(eq(receipts.namespace_id, namespace_id), eq(receipts.ray_id, ray_id)));
  return row;
}

export interface ReceiptFilter {
  before?: Date | undefined;
  /** Only those of refused requests. */
  is_refused?: boolean | undefined;
  /** Only those refused with this code. */
  code?: string | undefined;
}

/** A list leaves out what was exchanged with other servers, which may be long. */
const WITHOUT_EXCHANGES = sql`receipt #- '{verification,exchange}' #- '{captcha,exchange}'`.mapWith(receipts.receipt);

/** Returns the newest receipts of a namespace that match a filter, without the exchanges with other servers. */
export async function selectReceipts(
  queries: Queries,
  namespace_id: string,
  { before, is_refused = false, code }: ReceiptFilter,
): Promise<ReceiptRow[]> {
  // The index of refused requests has this expression.
  const refused_with = sql`receipt #>> '{outcome,code}'`;
  return await queries
    .select({ ...getTableColumns(receipts), receipt: WITHOUT_EXCHANGES })
    .from(receipts)
    .where(
      and(
        eq(receipts.namespace_id, namespace_id),
        before && lt(receipts.create_ts, before),
        is_refused || code !== undefined ? sql`${refused_with} is not null` : undefined,
        code === undefined ? undefined : sql`${refused_with} = ${code}`,
      ),
    )
    .orderBy(desc(receipts.create_ts), desc(receipts.ray_id))
    .limit(LISTED_MAX);
}

/** Deletes a batch of receipts that were created before a given time. Returns how many; more may remain. */
export async function deleteReceiptsBefore(queries: Queries, before: Date): Promise<number> {
  return await deleteOldRows(queries, receipts.create_ts, { before, limit: DELETED_AT_ONCE_MAX });
}
