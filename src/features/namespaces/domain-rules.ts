import { hostname } from 'node:os';

/** A DNS record by which the owner of a domain says which namespace may have it. */
export interface DomainProof {
  name: string;
  type: 'TXT';
  value: string;
}

export function proofOf(domain: string, namespace_id: string): DomainProof {
  return { name: `_muster.${domain}`, type: 'TXT', value: `muster-namespace=${namespace_id}` };
}

/** By what right a namespace may have a domain without a proof: the operator named both, or only the domain. */
export type OperatorRight = 'given' | 'allowed' | undefined;

/** Reads entries like `play.example.com=NAMESPACE_ID`, `*.example.com` and `*`. */
export function operatorRight(entries: readonly string[], domain: string, namespace_id: string): OperatorRight {
  const rights = entries.map((entry): OperatorRight => {
    const [pattern = '', owner] = entry.toLowerCase().split('=');
    const is_named = pattern.startsWith('*') ? domain.endsWith(pattern.slice(1)) : domain === pattern;
    if (!is_named || (owner !== undefined && owner !== namespace_id)) return undefined;
    return owner === undefined ? 'allowed' : 'given';
  });
  return rights.includes('given') ? 'given' : rights.find((right) => right !== undefined);
}

/** How the service is reached. */
export interface OwnNames {
  public_url: string;
  local_url: string;
  /** The address or name listened on. */
  host: string;
  server_host: string;
  /** Further names of the service, which only the operator knows. */
  own_hosts: readonly string[];
  sites_domain: string;
}

/** The host names that no namespace can have, however they came into the database. */
export function createReservedHosts({ sites_domain, ...names }: OwnNames) {
  const urls = [names.public_url, names.local_url].map((url) => new URL(url).hostname);
  const own = new Set([...urls, names.host, names.server_host, hostname(), ...names.own_hosts].map(toName));

  /** Whether the API answers under a name. */
  const isOwn = (host: string) => own.has(toName(host));

  return {
    isOwn,
    /** Whether it does, or the name can be nobody's: an address, a name of this machine, or one below the sites' domain. */
    isReserved(host: string): boolean {
      const name = toName(host);
      const is_of_machine = !name.includes('.') || /\.(localhost|local)$/.test(name) || /[\d\]]$/.test(name);
      return isOwn(name) || is_of_machine || name === sites_domain || name.endsWith(`.${sites_domain}`);
    },
  };
}

function toName(host: string): string {
  return host.toLowerCase().replace(/\.$/, '');
}
