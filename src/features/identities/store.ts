import { and, asc, eq, isNull, lt, lte, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { isAnyOf } from '../../platform/database/lists.ts';
import { deleteOldRows } from '../../platform/database/old-rows.ts';
import { deleteTopics, touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type IdentityRow, identities, type RefreshTokenRow, refreshTokens } from './tables.ts';

const DUE_MAX = 100;
const REFRESH_TOKENS_AT_ONCE = 1_000;
const GUESTS_AT_ONCE = 500;

export async function insertIdentity(queries: Queries, row: IdentityRow): Promise<void> {
  await queries.insert(identities).values(row);
}

export async function selectIdentity(queries: Queries, identity_id: string): Promise<IdentityRow | undefined> {
  const [row] = await queries.select().from(identities).where(eq(identities.identity_id, identity_id));
  return row;
}

/** Returns the existing ones of the identities, ordered by id. */
export async function selectIdentities(queries: Queries, identity_ids: string[]): Promise<IdentityRow[]> {
  return await queries
    .select()
    .from(identities)
    .where(isAnyOf(identities.identity_id, identity_ids))
    .orderBy(asc(identities.identity_id))
    .limit(identity_ids.length);
}

/** Returns the first administrator. */
export async function selectAdministrator(queries: Queries): Promise<IdentityRow | undefined> {
  const [row] = await queries
    .select()
    .from(identities)
    .where(and(eq(identities.is_admin, true), eq(identities.is_deleted, false)))
    .orderBy(asc(identities.create_ts), asc(identities.identity_id))
    .limit(1);
  return row;
}

/** Locks an identity until the transaction ends. Call it before touching topics. Returns undefined if there is none. */
export async function lockIdentity(tx: Tx, identity_id: string): Promise<IdentityRow | undefined> {
  const [row] = await tx.select().from(identities).where(eq(identities.identity_id, identity_id)).for('no key update');
  return row;
}

/** Updates an identity, unless it is deleted, and bumps the groups that show it. */
export async function updateIdentity(
  tx: Tx,
  identity_id: string,
  values: Partial<IdentityRow>,
  group_ids: string[],
): Promise<void> {
  await touch(tx, [topics.identity(identity_id), ...group_ids.map(topics.group)]);
  await tx
    .update(identities)
    // Sets the id to itself, because an update without values is not a statement.
    .set({ identity_id, ...values })
    .where(and(eq(identities.identity_id, identity_id), eq(identities.is_deleted, false)));
}

/** Returns identities that are due for deletion. */
export async function selectToDelete(queries: Queries, now: Date): Promise<IdentityRow[]> {
  return await queries
    .select()
    .from(identities)
    .where(and(lte(identities.delete_ts, now), eq(identities.is_deleted, false)))
    .orderBy(asc(identities.delete_ts))
    .limit(DUE_MAX);
}

export async function insertRefreshToken(queries: Queries, row: RefreshTokenRow): Promise<void> {
  await queries.insert(refreshTokens).values(row);
}

/** Locks a refresh token until the transaction ends, so that the first of concurrent uses replaces it. */
export async function lockRefreshToken(tx: Tx, token_hash: string): Promise<RefreshTokenRow | undefined> {
  const [row] = await tx.select().from(refreshTokens).where(eq(refreshTokens.token_hash, token_hash)).for('update');
  return row;
}

export async function replaceRefreshToken(tx: Tx, token_hash: string, now: Date): Promise<void> {
  await tx
    .update(refreshTokens)
    .set({ revoke_ts: now, is_replaced: true })
    .where(eq(refreshTokens.token_hash, token_hash));
}

export async function revokeRefreshTokens(queries: Queries, token_hashes: string[], now: Date): Promise<void> {
  await queries
    .update(refreshTokens)
    .set({ revoke_ts: now, is_replaced: false })
    .where(sql`${refreshTokens.token_hash} = any(${sql.param(token_hashes)}::text[])`);
}

export async function revokeRefreshTokensOf(tx: Tx, identity_id: string, now: Date): Promise<void> {
  await tx
    .update(refreshTokens)
    .set({ revoke_ts: now, is_replaced: false })
    .where(and(eq(refreshTokens.identity_id, identity_id), isNull(refreshTokens.revoke_ts)));
}

/** Deletes a batch of expired refresh tokens. Returns how many; more may remain. */
export async function deleteExpiredRefreshTokens(queries: Queries, now: Date): Promise<number> {
  return await deleteOldRows(queries, refreshTokens.expire_ts, { before: now, limit: REFRESH_TOKENS_AT_ONCE });
}

/** Keeps an identity until a given time, or longer if that was decided earlier. Returns false if there is none. */
export async function keepIdentity(queries: Queries, identity_id: string, until: Date): Promise<boolean> {
  const rows = await queries
    .update(identities)
    .set({ keep_until_ts: sql`greatest(${identities.keep_until_ts}, ${until.toISOString()}::timestamptz)` })
    .where(and(eq(identities.identity_id, identity_id), eq(identities.is_deleted, false)))
    .returning({ identity_id: identities.identity_id });
  return rows.length > 0;
}

/**
 * Locks a batch of guests that may be removed, ordered by `keep_until_ts`. Skips those locked by other transactions.
 */
export async function lockGuestsToRemove(tx: Tx, now: Date): Promise<string[]> {
  const rows = await tx
    .select({ identity_id: identities.identity_id })
    .from(identities)
    .where(
      and(
        lt(identities.keep_until_ts, now),
        // Literals, because the planner uses a partial index only where it can prove the condition.
        sql`not ${identities.is_registered} and not ${identities.is_admin}`,
      ),
    )
    .orderBy(asc(identities.keep_until_ts))
    .limit(GUESTS_AT_ONCE)
    .for('update', { skipLocked: true });
  return rows.map(({ identity_id }) => identity_id);
}

/** Deletes the expired refresh tokens of identities. Returns the identities that still have some, revoked ones included. */
export async function dropRefreshTokens(tx: Tx, identity_ids: string[], now: Date): Promise<string[]> {
  const theirs = sql`${refreshTokens.identity_id} = any(${sql.param(identity_ids)}::uuid[])`;
  await tx.delete(refreshTokens).where(and(theirs, lt(refreshTokens.expire_ts, now)));
  const rows = await tx
    .select({ identity_id: refreshTokens.identity_id })
    .from(refreshTokens)
    .where(theirs)
    .groupBy(refreshTokens.identity_id)
    .orderBy(asc(refreshTokens.identity_id))
    .limit(identity_ids.length);
  return rows.map(({ identity_id }) => identity_id);
}

export async function postponeRemoval(tx: Tx, identity_ids: string[], keep_until_ts: Date): Promise<void> {
  await tx
    .update(identities)
    .set({ keep_until_ts })
    .where(sql`${identities.identity_id} = any(${sql.param(identity_ids)}::uuid[])`);
}

/** Deletes identities. Returns the uploads of their pictures. */
export async function deleteIdentities(tx: Tx, identity_ids: string[]): Promise<string[]> {
  const rows = await tx
    .delete(identities)
    .where(sql`${identities.identity_id} = any(${sql.param(identity_ids)}::uuid[])`)
    .returning({ avatar_upload_id: identities.avatar_upload_id });
  await deleteTopics(tx, [...identity_ids.map(topics.identity), ...identity_ids.map(topics.gamesOf)]);
  return rows.flatMap(({ avatar_upload_id }) => avatar_upload_id ?? []);
}
