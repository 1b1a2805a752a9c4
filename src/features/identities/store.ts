import { and, asc, eq, inArray, isNull, lt, lte } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type IdentityRow, identities, type RefreshTokenRow, refreshTokens } from './tables.ts';

const DUE_MAX = 100;

export async function insertIdentity(queries: Queries, row: IdentityRow): Promise<void> {
  await queries.insert(identities).values(row);
}

export async function selectIdentity(queries: Queries, identity_id: string): Promise<IdentityRow | undefined> {
  const [row] = await queries.select().from(identities).where(eq(identities.identity_id, identity_id));
  return row;
}

/** Those there are, in the order of their ids. */
export async function selectIdentities(queries: Queries, identity_ids: string[]): Promise<IdentityRow[]> {
  return await queries
    .select()
    .from(identities)
    .where(inArray(identities.identity_id, identity_ids))
    .orderBy(asc(identities.identity_id))
    .limit(identity_ids.length);
}

/** The first administrator there was. */
export async function selectAdministrator(queries: Queries): Promise<IdentityRow | undefined> {
  const [row] = await queries
    .select()
    .from(identities)
    .where(and(eq(identities.is_admin, true), eq(identities.is_deleted, false)))
    .orderBy(asc(identities.create_ts), asc(identities.identity_id))
    .limit(1);
  return row;
}

/** Whoever else wants the identity for himself waits until the transaction ends; before topics are touched. */
export async function lockIdentity(tx: Tx, identity_id: string): Promise<void> {
  await tx
    .select({ identity_id: identities.identity_id })
    .from(identities)
    .where(eq(identities.identity_id, identity_id))
    .for('no key update');
}

/** Changes an identity that has not been forgotten, and tells of it in the groups that show it. Undefined when there is none. */
export async function updateIdentity(
  tx: Tx,
  identity_id: string,
  values: Partial<IdentityRow>,
  group_ids: string[],
): Promise<IdentityRow | undefined> {
  await touch(tx, [topics.identity(identity_id), ...group_ids.map(topics.group)]);
  const [row] = await tx
    .update(identities)
    // With itself, since no change at all would be no statement.
    .set({ identity_id, ...values })
    .where(and(eq(identities.identity_id, identity_id), eq(identities.is_deleted, false)))
    .returning();
  return row;
}

/** Identities whose time to be forgotten has come. */
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

export async function selectRefreshToken(queries: Queries, token_hash: string): Promise<RefreshTokenRow | undefined> {
  const [row] = await queries.select().from(refreshTokens).where(eq(refreshTokens.token_hash, token_hash));
  return row;
}

/** Uses a refresh token up. False when it has been: two who come with the same one do not both get a new one. */
export async function revokeRefreshToken(queries: Queries, token_hash: string, now: Date): Promise<boolean> {
  const rows = await queries
    .update(refreshTokens)
    .set({ revoke_ts: now })
    .where(and(eq(refreshTokens.token_hash, token_hash), isNull(refreshTokens.revoke_ts)))
    .returning({ token_hash: refreshTokens.token_hash });
  return rows.length > 0;
}

export async function revokeRefreshTokensOf(tx: Tx, identity_id: string, now: Date): Promise<void> {
  await tx
    .update(refreshTokens)
    .set({ revoke_ts: now })
    .where(and(eq(refreshTokens.identity_id, identity_id), isNull(refreshTokens.revoke_ts)));
}

/** Forgets refresh tokens that would be of no use to anybody. */
export async function deleteExpiredRefreshTokens(queries: Queries, now: Date): Promise<void> {
  await queries.delete(refreshTokens).where(lt(refreshTokens.expire_ts, now));
}
