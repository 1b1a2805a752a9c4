import { eq, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { uploadQuotas } from './tables.ts';

/** The most bytes that uploads of one quota announce in a day, and hold together. */
export interface QuotaLimits {
  day_bytes_max: number;
  kept_bytes_max: number;
}

interface Charge {
  scope: string;
  bytes: number;
  /** In UTC, as 2030-01-31. */
  day: string;
}

/** Counts bytes against a quota, unless they exceed one of its limits. False when they do; then nothing is counted. */
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

/** The bytes that the uploads of a quota hold. */
export async function selectKeptBytes(queries: Queries, scope: string): Promise<number> {
  const [row] = await queries.select().from(uploadQuotas).where(eq(uploadQuotas.scope, scope));
  return row?.kept_bytes ?? 0;
}

/** Gives bytes back that an upload held. The day's are not: what was announced stays announced. */
export async function refundQuota(tx: Tx, scope: string, bytes: number): Promise<void> {
  await tx
    .update(uploadQuotas)
    .set({ kept_bytes: sql`greatest(0, ${uploadQuotas.kept_bytes} - ${bytes}::bigint)` })
    .where(eq(uploadQuotas.scope, scope));
}
