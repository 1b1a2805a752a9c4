import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import { isWithin, type Network, PORT_MAX, parseNetwork } from '../networks.ts';

/** The target of a connection: a host and one of its addresses. */
export interface Endpoint {
  /** The `hostname` of `new URL()`, without brackets and without a trailing dot. */
  host: string;
  port: number;
  address: string;
}

/** All IPv6 addresses of the Internet (RFC 4291, 2.4). The others are not assigned. */
const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/3');
/** Azure's metadata service, which returns secrets. It is the only metadata service with a public address. */
const AZURE_WIRE_SERVER = '168.63.129.16';
const UNPRIVILEGED_PORT_MIN = 1_024;

/**
 * Returns whether an address is on the Internet: not in IANA's special-purpose registries, not an alias of another
 * address (IPv4 mapped into IPv6, NAT64, 6to4, Teredo), and not a cloud's metadata service.
 */
export function isPublicAddress(text: string): boolean {
  if (isIP(text) === 0 || text === AZURE_WIRE_SERVER) return false;
  const address = ipaddr.parse(text);
  if (address.range() !== 'unicast') return false;
  return address.kind() === 'ipv4' || address.match(GLOBAL_IPV6);
}

/** Returns whether an address is this machine's, where services may listen that are closed to the Internet. */
export function isOwnAddress(text: string): boolean {
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return own.some(({ address }) => isIP(address) !== 0 && isSame(address, text));
}

function isSame(one: string, other: string): boolean {
  return ipaddr.process(one).toNormalizedString() === ipaddr.process(other).toNormalizedString();
}

/** Returns whether a port is that of http or https, or unprivileged. Others may belong to mail servers and the like. */
export function isUsualPort(port: number): boolean {
  return port === 80 || port === 443 || port >= UNPRIVILEGED_PORT_MIN;
}

/** Targets that the operator allows even though they are private. */
export interface AllowList {
  /** Returns whether the list has the host at this port, or a network in which the host's address may be. */
  mayAllow(host: string, port: number): boolean;
  /** Returns whether the list has the host, its address, or a network of the address. */
  allows(endpoint: Endpoint): boolean;
}

interface Entry {
  /** In lower case; undefined for a network. */
  host: string | undefined;
  network: Network | undefined;
  /** Undefined for all ports. */
  port: number | undefined;
}

/**
 * Parses entries like `10.1.0.0/16`, `10.1.2.3:8080`, `[fd00::1]:8080` and `verify.internal:8080`. Throws RangeError for
 * others.
 */
export function parseAllowList(entries: readonly string[]): AllowList {
  const parsed = entries.map(parseEntry);
  const isPort = (entry: Entry, port: number) => entry.port === undefined || entry.port === port;
  const names = (host: string, port: number) => parsed.some((entry) => entry.host === host && isPort(entry, port));
  return {
    mayAllow: (host, port) =>
      names(host, port) || parsed.some((entry) => entry.network !== undefined && isPort(entry, port)),
    allows({ host, port, address }) {
      const candidate = ipaddr.process(address);
      const isAllowed = ({ network }: Entry) => network !== undefined && isWithin(candidate, network);
      return names(host, port) || parsed.some((entry) => isPort(entry, port) && isAllowed(entry));
    },
  };
}

function parseEntry(text: string): Entry {
  const network = parseNetwork(text);
  if (network) return { host: undefined, network, port: undefined };
  const { host = '', port } = /^(?<host>\[[0-9a-fA-F:.]+\]|[^:/[\]]+)(:(?<port>\d{1,5}))?$/.exec(text)?.groups ?? {};
  const number = port === undefined ? undefined : Number(port);
  const bare = toBareHost(host.toLowerCase());
  const is_port = number === undefined || (number > 0 && number <= PORT_MAX);
  if (!is_port || !URL.canParse(`http://${host}`)) throw new RangeError(text);
  const address = parseNetwork(bare);
  if (address) return { host: undefined, network: address, port: number };
  // Targets are compared by `new URL().hostname`, so a text that it changes (`10.1.2` becomes 10.1.0.2) is not a name.
  const is_name = /^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/.test(bare) && new URL(`http://${bare}`).hostname === bare;
  if (!is_name) throw new RangeError(text);
  return { host: bare, network: undefined, port: number };
}

/** Removes the brackets of IPv6 and the trailing dot from `new URL().hostname`. */
export function toBareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$|\.$/g, '');
}

/** Returns the port of a URL; its scheme's default if the URL names none. */
export function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port);
  return protocol === 'https:' ? 443 : 80;
}
