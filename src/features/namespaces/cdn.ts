import { hostname } from 'node:os';
import type { Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import { createTxtLookup } from '../../platform/outbound/txt-records.ts';
import { createWatchedCache } from '../../platform/watch/cache.ts';
import type { Feed } from '../../platform/watch/feed.ts';
import { refuseProblem } from '../names.ts';
import { topics } from '../topics.ts';
import * as store from './cdn-store.ts';
import { createReservedHosts, type DomainProof, type OwnNames, operatorRight, proofOf } from './domain-rules.ts';
import { isDomain, isPasswordHash, isUserName } from './rules.ts';
import type { NamespaceScope } from './store.ts';
import type { NamespaceRow } from './tables.ts';

const DOMAINS_MAX = 10;
const USERS_MAX = 32;
const REMEMBERED_DOMAINS_MAX = 10_000;

/** The operator's settings of host names. */
export interface DomainSettings extends OwnNames {
  /** Domains that namespaces may have without a proof. */
  domains_allow: readonly string[];
  /** Name servers to ask for proofs. Empty for those of the machine. */
  name_servers: readonly string[];
}

/** A domain that a namespace had until another one proved that it owns the domain. */
interface LostDomain extends NamespaceScope {
  domain: string;
}

interface CdnSettingsDependencies extends DomainSettings {
  database: Database;
  clock: Clock;
  feed: Feed;
  /** Throws NAMESPACE_NOT_FOUND. */
  get(scope: NamespaceScope): Promise<NamespaceRow>;
  /** Runs a change. Throws NAMESPACE_NOT_FOUND if it returns false. */
  change(scope: NamespaceScope, work: (tx: Tx) => Promise<boolean>): Promise<void>;
}

/** Creates the use cases of a namespace's site: its domains and users. */
export function createCdnSettings(dependencies: CdnSettingsDependencies) {
  const { database, clock, feed, domains_allow, name_servers, get, change } = dependencies;
  const reserved_hosts = createReservedHosts(hostname(), dependencies);
  const lookUpTxt = createTxtLookup(name_servers);
  // Every request to a host other than the API's looks up its domain.
  const remembered = createWatchedCache({
    feed,
    topic: topics.siteHost,
    load: async (domain: string) => (await store.selectNamespaceWith(database.queries, domain))?.namespace_id,
    entries_max: REMEMBERED_DOMAINS_MAX,
  });

  const update = (scope: NamespaceScope, settings: Partial<NamespaceRow>) =>
    change(scope, (tx) => store.updateSettings(tx, scope, settings));

  /**
   * Checks that a namespace may have a domain. If another namespace has the domain, then only a DNS record, or an operator's
   * entry that names this namespace, gives it the domain.
   */
  async function assertMayHave(
    domain: string,
    { game_id, namespace_id }: NamespaceScope,
    is_taken: boolean,
  ): Promise<void> {
    const right = operatorRight(domains_allow, domain, namespace_id);
    if (right === 'given' || (right === 'allowed' && !is_taken)) return;
    const proof = proofOf(domain, namespace_id);
    const texts = await lookUpTxt(proof.name, game_id).catch((cause: unknown) => {
      throw new ServiceError('CDN_DOMAIN_NOT_CHECKED', { name: proof.name }, { cause });
    });
    if (texts.includes(proof.value)) return;
    if (is_taken) throw taken(proof);
    throw new ServiceError('CDN_DOMAIN_NOT_PROVEN', { ...proof }, { metadata: { record: proof } });
  }

  return {
    /** Returns domains and names of users, without passwords. */
    async domainsAndUsersOf(scope: NamespaceScope) {
      const { namespace_id } = await get(scope);
      const [domains, users] = await Promise.all([
        store.selectDomains(database.queries, namespace_id),
        store.selectUsers(database.queries, namespace_id),
      ]);
      return { domains, user_names: users.map(({ user }) => user) };
    },
    /** Sets whether pages of the namespace's domains need no token. */
    setDomainPublicAuth: (scope: NamespaceScope, enabled: boolean) =>
      update(scope, { enable_domain_public_auth: enabled }),
    setAuthType: (scope: NamespaceScope, auth_type: NamespaceRow['auth_type']) => update(scope, { auth_type }),
    /**
     * Adds a domain that the namespace has proven to own or that the operator allows. Repeating it is harmless. Returns
     * the domain and the namespace that had it until now, if one had. Throws CDN_INVALID_DOMAIN, CDN_DOMAIN_NOT_PROVEN,
     * CDN_DOMAIN_NOT_CHECKED, CDN_TOO_MANY_DOMAINS or CLOUD_HOSTNAME_TAKEN.
     */
    async addDomain(scope: NamespaceScope, text: string): Promise<LostDomain | undefined> {
      const domain = text.toLowerCase();
      if (!isDomain(domain) || reserved_hosts.isReserved(domain)) throw new ServiceError('CDN_INVALID_DOMAIN', {});
      const { game_id, namespace_id } = await get(scope);
      const current = await store.selectNamespaceWith(database.queries, domain);
      if (current?.namespace_id === namespace_id) return undefined;
      await assertMayHave(domain, { game_id, namespace_id }, current !== undefined);
      const row = { domain, namespace_id, create_ts: clock.now() };
      const wanted = { row, from: current, domains_max: DOMAINS_MAX };
      const { outcome, lost_by } = await database.transact((tx) => store.insertDomain(tx, scope, wanted));
      remembered.forget(domain);
      if (outcome === 'taken') throw taken(proofOf(domain, namespace_id));
      if (outcome === 'too_many') throw new ServiceError('CDN_TOO_MANY_DOMAINS', { max: DOMAINS_MAX });
      return lost_by && { ...lost_by, domain };
    },
    async removeDomain(scope: NamespaceScope, text: string): Promise<void> {
      const domain = text.toLowerCase();
      const { namespace_id } = await get(scope);
      // The topic of a name that is no domain of this namespace must not be created.
      if ((await store.selectNamespaceWith(database.queries, domain))?.namespace_id !== namespace_id) return;
      await database.transact((tx) => store.deleteDomain(tx, scope, domain));
      remembered.forget(domain);
    },
    /**
     * Adds a user or changes its password. Throws CDN_INVALID_AUTH_USER_PASSWORD unless the password is a bcrypt hash, or
     * CDN_TOO_MANY_AUTH_USERS.
     */
    async setUser(scope: NamespaceScope, user: { user: string; password: string }): Promise<void> {
      if (!isUserName(user.user)) refuseProblem(['user', 'invalid'], '1 to 128 printable characters, no colon');
      if (!isPasswordHash(user.password)) throw new ServiceError('CDN_INVALID_AUTH_USER_PASSWORD', {});
      await get(scope);
      const is_set = await database.transact((tx) => store.upsertUser(tx, scope, user, USERS_MAX));
      if (!is_set) throw new ServiceError('CDN_TOO_MANY_AUTH_USERS', { max: USERS_MAX });
    },
    async removeUser(scope: NamespaceScope, user: string): Promise<void> {
      await get(scope);
      await database.transact((tx) => store.deleteUser(tx, scope, user));
    },
    /** Returns names and password hashes of the users who may see the site. */
    users: (namespace_id: string) => store.selectUsers(database.queries, namespace_id),
    /** Host names that no namespace can have, even if one is stored as its domain. */
    reserved_hosts,
    /** Returns the namespace of a domain. Calls `count` before it reads the database. */
    findByDomain: remembered.getCounted,
  };
}

function taken(proof: DomainProof): ServiceError {
  return new ServiceError('CLOUD_HOSTNAME_TAKEN', { ...proof }, { metadata: { record: proof } });
}
