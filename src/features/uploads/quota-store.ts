import { eq, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { uploadQuotas } from './tables.ts';

/** Limits for the bytes that uploads of one quota announce in a day and store in total. */
export interface QuotaLimits {
  day_bytes_max: number;
  kept_bytes_max: number;
}

interface Charge {
  scope: string;
  bytes: number;
  /** The day in UTC, like 2030-01-31. */
  day: string;
}

/** Counts bytes against a quota. Returns false, and counts nothing, if they exceed one of its limits. */
export async function chargeQuota(
  tx: Tx,
  { scope, bytes, day }: Charge,
  { day_bytes_max, kept_bytes_max }: QuotaLimits,
): Promise<boolean> {
  const rows = await tx.execute(sql`
    insert into ${uploadQuotas} as quota (scope, day, day_bytes, kept_bytes)
    select ${scope}, ${day}, ${bytes}::bigint, ${bytes}::bigint
    where ${bytes}::bigint <= least(${day_bytes_max}::bigint, ${kept_bytes_max}::bigint)
    on conflict (scope) do update set
      day = excluded.day,
      day_bytes = case when quota.day = excluded.day then quota.day_bytes else 0 end + excluded.day_bytes,
      kept_bytes = quota.kept_bytes + excluded.kept_bytes
    where quota.kept_bytes + excluded.kept_bytes <= ${kept_bytes_max}::bigint
      and case when quota.day = excluded.day then quota.day_bytes else 0 end + excluded.day_bytes
        <= ${day_bytes_max}::bigint
    returning scope`);
  return rows.length > 0;
}

/** Returns the bytes that the uploads of a quota store. */
export async function selectKeptBytes(queries: Queries, scope: string): Promise<number> {
  const [row] = await queries.select().from(uploadQuotas).where(eq(uploadQuotas.scope, scope));
  return row?.kept_bytes ?? 0;
}

/** Releases stored bytes of a quota. The bytes of the day stay counted, because they were announced. */
export async function refundQuota(tx: Tx, scope: string, bytes: number): Promise<void> {
  await tx
    .update(uploadQuotas)
    .set({ kept_bytes: sql`greatest(0, ${uploadQuotas.kept_bytes} - ${bytes}::bigint)` })
    .where(eq(uploadQuotas.scope, scope));
}
