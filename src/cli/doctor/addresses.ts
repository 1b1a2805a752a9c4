import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { connect } from 'node:net';
import ipaddr from 'ipaddr.js';
import { getProxyForUrl } from 'proxy-from-env';
import type { ApiCaller } from '../api-caller.ts';
import { readServers } from '../servers.ts';
import type { Scope, Session } from '../session.ts';
import { hostOf, portOf } from '../url-parts.ts';
import { CONNECT_WITHIN_MS, type Finding } from './finding.ts';

interface Bootstrap {
  domains: { cdn: string };
  origins: { hub: string };
}

const PORTS = { http: 80, https: 443 };
/** Protocols whose ports take a connection. */
const WITH_CONNECTIONS = ['http', 'https', 'tcp', 'tcp_tls'];
/** Time after its start in which a game server need not listen yet. */
const LISTENS_AFTER_MS = 10_000;
/** A name that no game has. */
const ANY_SITE = 'muster-doctor';

/** Checks the addresses that players use: the domains and ports of the service, and the port of a game server. */
export async function checkAddresses(session: Session, scope: Scope | undefined): Promise<Finding[]> {
  const { api } = session;
  const { origins, domains } = await api.get<Bootstrap>('/cloud/bootstrap');
  const announced = new URL(origins.hub);
  // Behind a proxy, this machine can neither look names up nor connect by itself.
  if (getProxyForUrl(announced.href) !== '') return [];
  const unreachable = checkAnnounced(api, announced);
  return [
    ...(unreachable ? [unreachable] : await checkPorts(api, announced)),
    ...checkEncryption(announced),
    ...(await checkSites(domains.cdn)),
    ...(await checkServer(session, scope)),
  ];
}

/** Returns a finding if the service tells players an address that only its own machine reaches. */
function checkAnnounced({ url }: ApiCaller, announced: URL): Finding | undefined {
  if (!isLocal(hostOf(announced)) || isLocal(hostOf(new URL(url)))) return undefined;
  const what = `The service tells players the address ${announced.origin}, which only its own machine reaches.`;
  return { what, advice: `Set MUSTER_PUBLIC_URL, for example to ${url}.` };
}

/** Checks that the service's domain leads to its ports. */
async function checkPorts({ url }: ApiCaller, announced: URL): Promise<Finding[]> {
  const host = hostOf(announced);
  if (!(await hasAddress(host))) {
    const advice = 'Create a DNS record (A or AAAA) for it, or correct MUSTER_PUBLIC_URL.';
    return [{ what: `The domain ${host} of the service has no address.`, advice }];
  }
  const is_https = announced.protocol === 'https:';
  const port = portOf(announced);
  // This command uses the announced address itself, and has reached it.
  const is_own = new URL(url).origin === announced.origin;
  if (!is_own && !(await answers(host, port))) {
    const advice = 'Let the service listen there (MUSTER_HTTPS_PORT, or a proxy), and open the port in the firewall.';
    return [{ what: `Nothing answers at ${host}, port ${port}, the address that the service tells players.`, advice }];
  }
  if (!is_https || port !== PORTS.https || isLocal(host) || (await answers(host, PORTS.http))) return [];
  const what = `Nothing answers at ${host}, port ${PORTS.http}: an address that is typed without https leads nowhere.`;
  const advice = `Set MUSTER_HTTP_PORT to ${PORTS.http}, and open the port in the firewall. Certificates of MUSTER_ACME_HOSTS need it, too.`;
  return [{ what, advice }];
}

/** Returns a finding if a public address is not encrypted. */
function checkEncryption(announced: URL): Finding[] {
  const is_public = ipaddr.isValid(hostOf(announced))
    ? ipaddr.parse(hostOf(announced)).range() === 'unicast'
    : !isLocal(hostOf(announced));
  if (announced.protocol === 'https:' || !is_public) return [];
  const what = `Tokens travel unencrypted to ${announced.origin}.`;
  const advice = `Set MUSTER_ACME_HOSTS to a domain of this machine, which needs the ports ${PORTS.http} and ${PORTS.https}; or put a proxy with https in front, and set MUSTER_PUBLIC_URL.`;
  return [{ what, advice }];
}

async function checkSites(domain: string): Promise<Finding[]> {
  if (isLocal(domain) || (await hasAddress(`${ANY_SITE}.${domain}`))) return [];
  const advice = `Create a DNS record for *.${domain} that leads to the service, or correct MUSTER_SITES_DOMAIN.`;
  return [{ what: `Sites of games have no address: *.${domain} is not in the DNS.`, advice }];
}

/** Checks that a running game server of the namespace can be reached from here. */
async function checkServer(session: Session, scope: Scope | undefined): Promise<Finding[]> {
  const servers = scope ? await readServers(session, scope) : [];
  const ports = servers
    .filter(({ started_at, destroyed_at }) => started_at && !destroyed_at && Date.now() - started_at > LISTENS_AFTER_MS)
    .flatMap(({ network }) => Object.values(network.ports));
  const port = ports.find(({ protocol, public_port }) => WITH_CONNECTIONS.includes(protocol) && public_port);
  const { public_hostname: host, public_port: number } = port ?? {};
  if (host === undefined || number === undefined || (await answers(host, number))) return [];
  const what = `No game server answers at ${host}, port ${number}.`;
  const advice =
    'Open MUSTER_SERVER_PORTS in the firewall. If players reach game servers at another address, set MUSTER_SERVER_HOST.';
  return [{ what, advice }];
}

function isLocal(host: string): boolean {
  if (ipaddr.isValid(host)) return ['loopback', 'unspecified'].includes(ipaddr.parse(host).range());
  return host === 'localhost' || host.endsWith('.localhost');
}

async function hasAddress(host: string): Promise<boolean> {
  return await lookup(host).then(
    () => true,
    () => false,
  );
}

/** Returns whether a port takes connections. */
async function answers(host: string, port: number): Promise<boolean> {
  const signal = AbortSignal.timeout(CONNECT_WITHIN_MS);
  const socket = connect({ host, port });
  try {
    await once(socket, 'connect', { signal });
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
