import type { Config } from './config.ts';
import type { Certificates } from './features/certificates/certificates.ts';
import type { Events } from './platform/events.ts';
import type { PortHandlers } from './platform/http/ports/listen.ts';
import { openRedirectPort } from './platform/http/ports/redirect-port.ts';
import { isCovered, openTlsPort } from './platform/http/ports/tls-port.ts';
import { isLocalName } from './platform/networks.ts';

const SERVERS_ADVICE =
  'ports with the protocol https have no TLS: get a certificate for these names from an authority that proves them by DNS, and name its files in MUSTER_TLS_CERTIFICATE and MUSTER_TLS_KEY';

interface PublicPortsOptions {
  certificates: Certificates;
  handlers: PortHandlers;
  /** The files that name the holders of the ports; undefined if game servers run as the service's user. */
  hold_files: { https: string; http: string } | undefined;
  events: Events;
}

/** Opens the ports for https, and for http that redirects there, if they are configured. Throws StartError. */
export async function openPublicPorts(
  { host, request_timeout_ms, servers_domain, tls }: Config,
  { certificates, handlers, hold_files, events }: PublicPortsOptions,
): Promise<AsyncDisposable> {
  const { https_port, http_port } = tls;
  await using opened = new AsyncDisposableStack();
  if (https_port !== undefined) {
    const shared = { host, request_timeout_ms, certificates, handlers, events };
    const tls_port = await openTlsPort({ ...shared, port: https_port, hold_file: hold_files?.https });
    opened.adopt(tls_port, (port) => port.stop());
    warnOfServers(servers_domain, { certificates, events });
    if (http_port !== undefined) {
      const { answerChallenge } = certificates;
      const hold_file = hold_files?.http;
      const redirect = { ...shared, port: http_port, hold_file, https_port, servers_domain, answerChallenge };
      opened.adopt(await openRedirectPort(redirect), (port) => port.stop());
    }
  }
  const everything = opened.move();
  return { [Symbol.asyncDispose]: () => everything.disposeAsync() };
}

/** Warns if game servers have names that no certificate covers. Pages served by https cannot connect to them. */
function warnOfServers(
  servers_domain: string,
  { certificates, events }: Pick<PublicPortsOptions, 'certificates' | 'events'>,
): void {
  const is_local = isLocalName(servers_domain);
  if (is_local || isCovered(`name.${servers_domain}`, certificates.current())) return;
  events.emit({ event: 'servers_not_covered', names: `*.${servers_domain}`, advice: SERVERS_ADVICE });
}
