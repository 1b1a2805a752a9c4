import type { ServedCertificates } from '../../platform/http/ports/tls-port.ts';
import { isCovered } from '../../platform/http/ports/tls-port.ts';
import { isLocalName } from '../../platform/networks.ts';
import type { AddressedPort, AddressOf, PublicAddress } from '../port-names.ts';
import { relayNames } from './relays/relay-names.ts';

const [HTTPS_PORT, HTTP_PORT] = [443, 80];

export interface AddressesOptions {
  /** The domain of servers: `<server>-<port>.DOMAIN`. */
  servers_domain: string;
  public_url: string;
  /** MUSTER_PORT. */
  service_port: number;
  /** The ports for https and http, where there are certificates. */
  https_port: number | undefined;
  http_port: number | undefined;
  certificates: Pick<ServedCertificates, 'current'>;
}

/**
 * Creates the function that returns the addresses of ports behind the gateway. Only browsers resolve names below
 * `localhost`, so answers have them only for ports that players must reach through the gateway.
 */
export function createAddressOf(options: AddressesOptions): AddressOf {
  const { servers_domain, public_url, service_port, https_port, http_port, certificates } = options;
  const front = new URL(public_url);
  const is_local = isLocalName(servers_domain);
  // Without a port for https of its own, a proxy in front of the service may have one.
  const is_front_tls = https_port === undefined && front.protocol === 'https:';
  const front_port = Number(front.port) || (is_front_tls ? HTTPS_PORT : HTTP_PORT);

  /** Returns the address of a relay. A relay with TLS has none without a certificate for a name that leads to it. */
  function relayAddress(relayed: AddressedPort, relay_port: number): PublicAddress | undefined {
    if (relayed.protocol !== 'tcp_tls')
      return { hostname: relayed.public_hostname ?? '', port: relay_port, is_tls: false };
    const served = certificates.current();
    const hostname = relayNames(relayed, servers_domain).find((name) => isCovered(name, served));
    return hostname === undefined ? undefined : { hostname, port: relay_port, is_tls: true };
  }

  return (named) => {
    const { protocol, gateway_name, relay_port, presence } = named;
    const is_http = protocol === 'https' || protocol === 'http';
    if (relay_port !== undefined) return relayAddress(named, relay_port);
    if (!is_http || gateway_name === undefined || (is_local && presence === undefined)) return undefined;
    const hostname = `${gateway_name}.${servers_domain}`;
    if (is_front_tls) return { hostname, port: front_port, is_tls: true };
    if (https_port === undefined) return { hostname, port: front_port, is_tls: false };
    if (protocol === 'https' && isCovered(hostname, certificates.current())) {
      return { hostname, port: https_port, is_tls: true };
    }
    return { hostname, port: http_port ?? service_port, is_tls: false };
  };
}
