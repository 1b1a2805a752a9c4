import { and, eq, gt } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import { deleteOldRows } from '../../platform/database/old-rows.ts';
import { type HubSecretRow, hubSecrets } from './tables.ts';

const EXPIRED_AT_ONCE = 1_000;

export async function insertSecret(queries: Queries, row: HubSecretRow): Promise<void> {
  await queries.insert(hubSecrets).values(row);
}

/** Deletes a link that has not expired, and returns it. Of concurrent callers one gets it. */
export async function takeLink(queries: Queries, secret_hash: string, now: Date): Promise<HubSecretRow | undefined> {
  const is_valid = and(eq(hubSecrets.is_link, true), gt(hubSecrets.expire_ts, now));
  const [row] = await queries
    .delete(hubSecrets)
    .where(and(eq(hubSecrets.secret_hash, secret_hash), is_valid))
    .returning();
  return row;
}

/** Returns a session that has not expired. */
export async function selectSession(
  queries: Queries,
  secret_hash: string,
  now: Date,
): Promise<HubSecretRow | undefined> {
  const is_valid = and(eq(hubSecrets.is_link, false), gt(hubSecrets.expire_ts, now));
  const [row] = await queries
    .select()
    .from(hubSecrets)
    .where(and(eq(hubSecrets.secret_hash, secret_hash), is_valid));
  return row;
}

export async function deleteSession(queries: Queries, secret_hash: string): Promise<void> {
  await queries.delete(hubSecrets).where(and(eq(hubSecrets.secret_hash, secret_hash), eq(hubSecrets.is_link, false)));
}

/** Deletes a batch of expired links and sessions. */
export async function deleteExpired(queries: Queries, now: Date): Promise<void> {
  await deleteOldRows(queries, hubSecrets.expire_ts, { before: now, limit: EXPIRED_AT_ONCE });
}
