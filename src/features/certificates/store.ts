import { and, asc, desc, eq, inArray, isNull, lt, lte, or, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { assert } from '../../platform/errors.ts';
import { touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { acmeAccounts, acmeChallenges, certificates } from './tables.ts';

/** Challenges of a host at one time. An order has one. */
const CHALLENGES_MAX = 100;

/** A host whose certificate this process orders, until `claimed_until_ts`. */
export interface Claim {
  host: string;
  directory: string;
  claimed_until_ts: Date;
  failures: number;
}

/** Adds hosts that have no row yet; they are due at once. */
export async function insertHosts(queries: Queries, directory: string, hosts: string[], now: Date): Promise<void> {
  if (hosts.length === 0) return;
  const rows = hosts.map((host) => ({ host, directory, due_ts: now }));
  await queries.insert(certificates).values(rows).onConflictDoNothing();
}

/** Returns the pairs of certificate and key that an authority has issued for hosts. */
export async function selectIssued(
  queries: Queries,
  directory: string,
  hosts: string[],
): Promise<{ host: string; certificate: string; key: string }[]> {
  const rows = await queries
    .select({ host: certificates.host, certificate: certificates.certificate, key: certificates.key })
    .from(certificates)
    .where(and(eq(certificates.directory, directory), inArray(certificates.host, hosts)))
    .orderBy(asc(certificates.host))
    .limit(hosts.length);
  return rows.flatMap(({ host, certificate, key }) =>
    certificate === null || key === null ? [] : [{ host, certificate, key }],
  );
}

/** Claims a host that is due and that no other process has claimed, or is claiming at this moment. */
export async function claimDue(
  queries: Queries,
  { directory, hosts, now, until }: { directory: string; hosts: string[]; now: Date; until: Date },
): Promise<Claim | undefined> {
  const is_free = or(isNull(certificates.claimed_until_ts), lt(certificates.claimed_until_ts, now));
  const of_directory = eq(certificates.directory, directory);
  const due = queries
    .select({ host: certificates.host })
    .from(certificates)
    .where(and(of_directory, inArray(certificates.host, hosts), lte(certificates.due_ts, now), is_free))
    .orderBy(asc(certificates.due_ts), asc(certificates.host))
    .limit(1)
    .for('update', { skipLocked: true });
  const [claimed] = await queries
    .update(certificates)
    .set({ claimed_until_ts: until })
    .where(and(of_directory, eq(certificates.host, due)))
    .returning({ host: certificates.host, failures: certificates.failures });
  return claimed && { ...claimed, directory, claimed_until_ts: until };
}

/** Stores the certificate of a claim. Returns false if another process has claimed the host since. */
export async function saveIssued(
  tx: Tx,
  claim: Claim,
  issued: { certificate: string; key: string; due_ts: Date },
): Promise<boolean> {
  await touch(tx, [topics.certificates()]);
  return await updateClaimed(tx, claim, { ...issued, failures: 0 });
}

/** Records that a claim's order failed, and when to try again. */
export async function saveFailure(queries: Queries, claim: Claim, due_ts: Date): Promise<void> {
  await updateClaimed(queries, claim, { due_ts, failures: claim.failures + 1 });
}

/** Releases a claim after its order was stopped. The host stays due. */
export async function releaseClaim(queries: Queries, claim: Claim): Promise<void> {
  await updateClaimed(queries, claim, {});
}

async function updateClaimed(
  queries: Queries,
  { directory, host, claimed_until_ts }: Claim,
  values: Partial<typeof certificates.$inferInsert>,
): Promise<boolean> {
  const rows = await queries
    .update(certificates)
    .set({ ...values, claimed_until_ts: null })
    .where(
      and(
        eq(certificates.directory, directory),
        eq(certificates.host, host),
        eq(certificates.claimed_until_ts, claimed_until_ts),
      ),
    )
    .returning({ host: certificates.host });
  return rows.length > 0;
}

/** Returns the key of the account with an authority. Inserts one if there is none; the first process's key wins. */
export async function findOrInsertAccountKey(
  queries: Queries,
  directory: string,
  makeKey: () => Promise<string>,
): Promise<string> {
  const read = () => queries.select().from(acmeAccounts).where(eq(acmeAccounts.directory, directory));
  const [existing] = await read();
  if (existing) return existing.key;
  await queries
    .insert(acmeAccounts)
    .values({ directory, key: await makeKey() })
    .onConflictDoNothing();
  const [winner] = await read();
  assert(winner, 'an inserted account can be read');
  return winner.key;
}

export async function insertChallenge(queries: Queries, row: typeof acmeChallenges.$inferInsert): Promise<void> {
  await queries.insert(acmeChallenges).values(row).onConflictDoNothing();
}

export async function deleteChallenge(queries: Queries, token: string, now: Date): Promise<void> {
  await queries.delete(acmeChallenges).where(or(eq(acmeChallenges.token, token), lt(acmeChallenges.expire_ts, now)));
}

/** Returns the answers to the challenges of a host, by token. */
export async function selectAnswers(
  queries: Queries,
  { host, now }: { host: string; now: Date },
): Promise<Map<string, string>> {
  const rows = await queries
    .select({ token: acmeChallenges.token, answer: acmeChallenges.answer })
    .from(acmeChallenges)
    .where(and(eq(acmeChallenges.host, host), sql`${acmeChallenges.expire_ts} > ${now.toISOString()}::timestamptz`))
    .orderBy(desc(acmeChallenges.expire_ts), asc(acmeChallenges.token))
    .limit(CHALLENGES_MAX);
  return new Map(rows.map(({ token, answer }) => [token, answer]));
}
