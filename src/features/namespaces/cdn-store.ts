import { and, asc, count, eq, sql } from 'drizzle-orm';
import type { PgColumn, PgUpdateSetSource } from 'drizzle-orm/pg-core';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import type { NamespaceScope } from './store.ts';
import { type DomainRow, namespaceAuthUsers, namespaceDomains, namespaces } from './tables.ts';

/** More than a namespace may have. */
const DOMAINS_READ_MAX = 100;
/** More than a namespace may have. */
const USERS_READ_MAX = 100;

/** Updates settings of a namespace. Returns false if the game has no such namespace. */
export async function updateSettings(
  tx: Tx,
  { game_id, namespace_id }: NamespaceScope,
  settings: PgUpdateSetSource<typeof namespaces>,
): Promise<boolean> {
  await touchSettings(tx, { game_id, namespace_id });
  const rows = await tx
    .update(namespaces)
    .set(settings)
    .where(and(eq(namespaces.game_id, game_id), eq(namespaces.namespace_id, namespace_id)))
    .returning({ namespace_id: namespaces.namespace_id });
  return rows.length > 0;
}

/**
 * Sets the maximum of lobbies of a namespace and of players per client. A new number of players is also that of clients at
 * VPNs, proxies, Tor and hosting. Returns false if the game has no such namespace.
 */
export async function updateMatchmakerLimits(
  tx: Tx,
  scope: NamespaceScope,
  { lobby_count_max, max_players }: { lobby_count_max: number; max_players: number },
): Promise<boolean> {
  const unlessSame = (column: PgColumn) =>
    sql`case ${namespaces.max_players_per_client} when ${max_players}::integer then ${column} else ${max_players}::integer end`;
  return await updateSettings(tx, scope, {
    lobby_count_max,
    max_players_per_client: max_players,
    max_players_per_client_vpn: unlessSame(namespaces.max_players_per_client_vpn),
    max_players_per_client_proxy: unlessSame(namespaces.max_players_per_client_proxy),
    max_players_per_client_tor: unlessSame(namespaces.max_players_per_client_tor),
    max_players_per_client_hosting: unlessSame(namespaces.max_players_per_client_hosting),
  });
}

/** Returns the domains of a namespace, ordered by name. */
export async function selectDomains(queries: Queries, namespace_id: string): Promise<DomainRow[]> {
  return await queries
    .select()
    .from(namespaceDomains)
    .where(eq(namespaceDomains.namespace_id, namespace_id))
    .orderBy(asc(namespaceDomains.domain))
    .limit(DOMAINS_READ_MAX);
}

/** Returns the namespace that has a domain. */
export async function selectNamespaceWith(queries: Queries, domain: string): Promise<NamespaceScope | undefined> {
  const [row] = await queries
    .select({ game_id: namespaces.game_id, namespace_id: namespaces.namespace_id })
    .from(namespaceDomains)
    .innerJoin(namespaces, eq(namespaces.namespace_id, namespaceDomains.namespace_id))
    .where(eq(namespaceDomains.domain, domain));
  return row;
}

interface WantedDomain {
  row: DomainRow;
  /** The namespace that had the domain. */
  from: NamespaceScope | undefined;
  domains_max: number;
}

/**
 * Adds a domain unless the namespace has the maximum. The caller has checked that the namespace has a right to it. Returns
 * the outcome, and the namespace that had the domain until now. It is `taken` if yet another namespace got the domain since
 * that check.
 */
export async function insertDomain(
  tx: Tx,
  scope: NamespaceScope,
  { row, from, domains_max }: WantedDomain,
): Promise<{ outcome: 'added' | 'exists' | 'taken' | 'too_many'; lost_by?: NamespaceScope | undefined }> {
  // Locks the namespace, so that concurrent requests cannot exceed the maximum.
  await touch(tx, [...settingsTopics(scope, row.domain), ...(from ? settingsTopics(from) : [])]);
  const current = await selectNamespaceWith(tx, row.domain);
  if (current?.namespace_id === row.namespace_id) return { outcome: 'exists' };
  if (current && current.namespace_id !== from?.namespace_id) return { outcome: 'taken' };
  const [counted] = await tx
    .select({ domains: count() })
    .from(namespaceDomains)
    .where(eq(namespaceDomains.namespace_id, row.namespace_id));
  if ((counted?.domains ?? 0) >= domains_max) return { outcome: 'too_many' };
  if (current) await removeRow(tx, current.namespace_id, row.domain);
  const added = await tx.insert(namespaceDomains).values(row).onConflictDoNothing().returning();
  return added.length > 0 ? { outcome: 'added', lost_by: current } : { outcome: 'taken' };
}

export async function deleteDomain(tx: Tx, scope: NamespaceScope, domain: string): Promise<void> {
  await touchSettings(tx, scope, domain);
  await removeRow(tx, scope.namespace_id, domain);
}

async function removeRow(tx: Tx, namespace_id: string, domain: string): Promise<void> {
  await tx
    .delete(namespaceDomains)
    .where(and(eq(namespaceDomains.namespace_id, namespace_id), eq(namespaceDomains.domain, domain)));
}

/** Returns the names and password hashes of a site's users, ordered by name. */
export async function selectUsers(
  queries: Queries,
  namespace_id: string,
): Promise<{ user: string; password: string }[]> {
  return await queries
    .select({ user: namespaceAuthUsers.user, password: namespaceAuthUsers.password })
    .from(namespaceAuthUsers)
    .where(eq(namespaceAuthUsers.namespace_id, namespace_id))
    .orderBy(asc(namespaceAuthUsers.user))
    .limit(USERS_READ_MAX);
}

/** Adds a user or changes its password. Returns false if the namespace has the maximum of users. */
export async function upsertUser(
  tx: Tx,
  scope: NamespaceScope,
  { user, password }: { user: string; password: string },
  users_max: number,
): Promise<boolean> {
  await touchSettings(tx, scope);
  const users = await selectUsers(tx, scope.namespace_id);
  if (users.length >= users_max && !users.some((existing) => existing.user === user)) return false;
  await tx
    .insert(namespaceAuthUsers)
    .values({ namespace_id: scope.namespace_id, user, password })
    .onConflictDoUpdate({ target: [namespaceAuthUsers.namespace_id, namespaceAuthUsers.user], set: { password } });
  return true;
}

export async function deleteUser(tx: Tx, scope: NamespaceScope, user: string): Promise<void> {
  await touchSettings(tx, scope);
  await tx
    .delete(namespaceAuthUsers)
    .where(and(eq(namespaceAuthUsers.namespace_id, scope.namespace_id), eq(namespaceAuthUsers.user, user)));
}

async function touchSettings(tx: Tx, scope: NamespaceScope, domain?: string): Promise<void> {
  await touch(tx, settingsTopics(scope, domain));
}

function settingsTopics({ game_id, namespace_id }: NamespaceScope, domain?: string): string[] {
  const host = domain === undefined ? [] : [topics.siteHost(domain)];
  return [topics.game(game_id), topics.namespace(namespace_id), ...host];
}
