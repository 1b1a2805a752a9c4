import { eq, sql } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import { timestamptz } from '../../platform/database/moments.ts';
import { deleteOldRows } from '../../platform/database/old-rows.ts';
import { captchaWindows, usedCaptchas } from './tables.ts';

const DELETED_AT_ONCE_MAX = 5_000;

/** A client of a namespace, identified by its address, or by its network for IPv6. */
export interface NamespaceClient {
  namespace_id: string;
  client: string;
}

/**
 * Counts a request without a captcha, if a captcha was solved after `solved_after` and fewer than `requests_max`
 * requests were counted since. Returns whether it counted the request; concurrent requests cannot exceed the maximum.
 */
export async function countRequest(
  queries: Queries,
  { namespace_id, client }: NamespaceClient,
  { requests_max, solved_after }: { requests_max: number; solved_after: Date },
): Promise<boolean> {
  const rows = await queries.execute(sql`
    update ${captchaWindows} set request_count = request_count + 1
    where namespace_id = ${namespace_id} and connection = ${client}
      and verify_ts > ${timestamptz(solved_after)} and request_count < ${requests_max}
    returning 1`);
  return rows.length > 0;
}

/** Starts a new window after a captcha was solved. */
export async function openWindow(
  queries: Queries,
  { namespace_id, client }: NamespaceClient,
  { verify_ts, expire_ts }: { verify_ts: Date; expire_ts: Date },
): Promise<void> {
  const opened = { verify_ts, expire_ts, request_count: 0 };
  await queries
    .insert(captchaWindows)
    .values({ namespace_id, client, ...opened })
    .onConflictDoUpdate({ target: [captchaWindows.namespace_id, captchaWindows.client], set: opened });
}

/** Claims a captcha. Returns false if it was claimed before; of concurrent claims one succeeds. */
export async function claimCaptcha(queries: Queries, captcha_id: string, expire_ts: Date): Promise<boolean> {
  const rows = await queries
    .insert(usedCaptchas)
    .values({ captcha_id, expire_ts })
    .onConflictDoNothing()
    .returning({ captcha_id: usedCaptchas.captcha_id });
  return rows.length > 0;
}

/** Releases a claimed captcha that was not spent, so that it can be tried again. */
export async function releaseCaptcha(queries: Queries, captcha_id: string): Promise<void> {
  await queries.delete(usedCaptchas).where(eq(usedCaptchas.captcha_id, captcha_id));
}

/** Deletes a batch of windows and captchas that expired before a moment. Returns how many; more may remain. */
export async function deleteExpired(queries: Queries, before: Date): Promise<number> {
  const old = { before, limit: DELETED_AT_ONCE_MAX };
  const windows = await deleteOldRows(queries, captchaWindows.expire_ts, old);
  const captchas = await deleteOldRows(queries, usedCaptchas.expire_ts, old);
  return windows + captchas;
}
