/** A DNS record by which the owner of a domain grants it to a namespace. */
export interface DomainProof {
  name: string;
  type: 'TXT';
  value: string;
}

export function proofOf(domain: string, namespace_id: string): DomainProof {
  return { name: `_muster.${domain}`, type: 'TXT', value: `muster-namespace=${namespace_id}` };
}

/** The operator's permission for a domain: `given` to this namespace, or `allowed` to all. */
export type OperatorRight = 'given' | 'allowed' | undefined;

/** Finds the permission in entries like `play.example.com=NAMESPACE_ID`, `*.example.com` and `*`. */
export function operatorRight(entries: readonly string[], domain: string, namespace_id: string): OperatorRight {
  const rights = entries.map((entry): OperatorRight => {
    const [pattern = '', owner] = entry.toLowerCase().split('=');
    const is_named = pattern.startsWith('*') ? domain.endsWith(pattern.slice(1)) : domain === pattern;
    if (!is_named || (owner !== undefined && owner !== namespace_id)) return undefined;
    return owner === undefined ? 'allowed' : 'given';
  });
  return rights.includes('given') ? 'given' : rights.find((right) => right !== undefined);
}

/** The names of the service. */
export interface OwnNames {
  public_url: string;
  local_url: string;
  /** The address to listen on, or localhost. */
  host: string;
  server_host: string;
  /** Further names of the service, as configured. */
  own_hosts: readonly string[];
  sites_domain: string;
  servers_domain: string;
}

/**
 * Creates the check for host names that no namespace can have, even if one is stored as its domain. `machine_name`: the name
 * of this machine.
 */
export function createReservedHosts(machine_name: string, { sites_domain, servers_domain, ...names }: OwnNames) {
  const domains = [sites_domain, servers_domain];
  const urls = [names.public_url, names.local_url].map((url) => new URL(url).hostname);
  const own = new Set([...urls, names.host, names.server_host, machine_name, ...names.own_hosts].map(toName));

  /** Returns whether the API answers under a name. */
  const isOwn = (host: string) => own.has(toName(host));

  return {
    isOwn,
    /**
     * Returns whether a name can belong to no namespace: the API's own, an address, a name of this machine, or one below the
     * domain of sites or servers.
     */
    isReserved(host: string): boolean {
      const name = toName(host);
      const is_of_machine = !name.includes('.') || /\.(localhost|local)$/.test(name) || /[\d\]]$/.test(name);
      return isOwn(name) || is_of_machine || domains.some((domain) => name === domain || name.endsWith(`.${domain}`));
    },
  };
}

function toName(host: string): string {
  return host.toLowerCase().replace(/\.$/, '');
}
