import type { MaybePromise } from '../../platform/maybe-promise.ts';
import type { Games } from '../games/games.ts';
import { isNameId } from '../names.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';

const PROD = 'prod';

interface HostsDependencies {
  games: Games;
  namespaces: Namespaces;
  sites_domain: string;
}

/** Returns the host name of an address, without the dot that ends an absolute one. */
export function hostnameOf(url: string): string {
  return new URL(url).hostname.replace(/\.$/, '');
}

/** What a host shows. `unknown_site`: no namespace has this name. */
type ShownAtHost = { is: 'api' } | { is: 'site'; namespace_id: string } | { is: 'unknown_site' };

export type Hosts = ReturnType<typeof createHosts>;

/**
 * Creates the mapping of host names to namespaces: `game--namespace.DOMAIN`, `game.DOMAIN` for prod, or a domain of the
 * namespace. All other hosts are the API's.
 */
export function createHosts({ games, namespaces, sites_domain }: HostsDependencies) {
  const { reserved_hosts } = namespaces.cdn;
  const suffix = `.${sites_domain}`;

  async function findByName(label: string, count: () => MaybePromise<void>): Promise<string | undefined> {
    const [game_name = '', namespace_name = PROD, ...more] = label.split('--');
    if (more.length > 0 || !isNameId(game_name) || !isNameId(namespace_name)) return undefined;
    const game_id = await games.findIdByNameId(game_name, count);
    return game_id && (await namespaces.findIdByNameId(game_id, namespace_name, count));
  }

  return {
    /** Returns what a host shows. Calls `count` before each read of the database. */
    async resolve(hostname: string, count: () => MaybePromise<void>): Promise<ShownAtHost> {
      if (hostname.endsWith(suffix) && !reserved_hosts.isOwn(hostname)) {
        const namespace_id = await findByName(hostname.slice(0, -suffix.length), count);
        return namespace_id === undefined ? { is: 'unknown_site' } : { is: 'site', namespace_id };
      }
      // A reserved host stays the API's, even if an earlier release let a namespace have it as its domain.
      const is_reserved = reserved_hosts.isReserved(hostname);
      const namespace_id = is_reserved ? undefined : await namespaces.cdn.findByDomain(hostname, count);
      return namespace_id === undefined ? { is: 'api' } : { is: 'site', namespace_id };
    },
  };
}
