import { isLocalName } from '../../../platform/networks.ts';
import type { AddressedPort } from '../../port-names.ts';

/**
 * Returns the names of a relayed port, the preferred first: of the machine, then of the server. The names of all servers may
 * lead to one machine, so only the first is always right. Names below localhost are for browsers only.
 */
export function relayNames({ public_hostname, gateway_name }: AddressedPort, servers_domain: string): string[] {
  const is_local = isLocalName(servers_domain);
  const own = public_hostname === undefined ? [] : [public_hostname];
  return gateway_name === undefined || is_local ? own : [...own, `${gateway_name}.${servers_domain}`];
}
