import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import { isWithin, type Network, parseNetwork } from '../networks.ts';

/** Somewhere to connect to: as it was named, and the address that the name stands for. */
export interface Endpoint {
  /** As `new URL().hostname` gives it, without brackets and without a dot at the end. */
  host: string;
  port: number;
  address: string;
}

/** All that has an address on the Internet in IPv6 (RFC 4291 2.4); the rest is not given out. */
const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/3');
/** Where Azure answers its machines' questions about themselves, with their secrets: the one such address that looks public. */
const AZURE_WIRE_SERVER = '168.63.129.16';
const PORT_MAX = 65_535;
const UNPRIVILEGED_PORT_MIN = 1_024;

/**
 * Whether an address is one of the Internet: none of IANA's special-purpose registries, nothing that stands for another
 * address (IPv4 mapped into IPv6, NAT64, 6to4, Teredo), nowhere that a cloud keeps its machines' secrets.
 */
export function isPublicAddress(text: string): boolean {
  if (isIP(text) === 0 || text === AZURE_WIRE_SERVER) return false;
  const address = ipaddr.parse(text);
  if (address.range() !== 'unicast') return false;
  return address.kind() === 'ipv4' || address.match(GLOBAL_IPV6);
}

/** Whether an address is this machine's: what listens there may be shut to the Internet. */
export function isOwnAddress(text: string): boolean {
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return own.some(({ address }) => isIP(address) !== 0 && isSame(address, text));
}

function isSame(one: string, other: string): boolean {
  return ipaddr.process(one).toNormalizedString() === ipaddr.process(other).toNormalizedString();
}

/** Mail, databases and the like are not spoken to: http, https, and what needs no privilege to listen on. */
export function isUsualPort(port: number): boolean {
  return port === 80 || port === 443 || port >= UNPRIVILEGED_PORT_MIN;
}

/** Targets that the operator lets requests go to, wherever they are. */
export interface AllowList {
  /** Whether the operator named the host itself, at this port. */
  names(host: string, port: number): boolean;
  /** Whether he named the host, its address, or a network that it lies in. */
  allows(endpoint: Endpoint): boolean;
}

interface Entry {
  /** In lower case; undefined for a network. */
  host: string | undefined;
  network: Network | undefined;
  /** Undefined: all ports. */
  port: number | undefined;
}

/** Reads entries like `10.1.0.0/16`, `10.1.2.3:8080`, `[fd00::1]:8080`, `verify.internal:8080`. Throws RangeError for others. */
export function parseAllowList(entries: readonly string[]): AllowList {
  const parsed = entries.map(parseEntry);
  const isPort = (entry: Entry, port: number) => entry.port === undefined || entry.port === port;
  const names = (host: string, port: number) => parsed.some((entry) => entry.host === host && isPort(entry, port));
  return {
    names,
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
  // Targets are known by the name that `new URL()` gives them: what it reads otherwise (`10.1.2` is 10.1.0.2) is none.
  const is_name = /^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/.test(bare) && new URL(`http://${bare}`).hostname === bare;
  if (!is_name) throw new RangeError(text);
  return { host: bare, network: undefined, port: number };
}

/** `new URL().hostname` without the brackets of IPv6 and without the dot at the end. */
export function toBareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$|\.$/g, '');
}

/** The port of a URL, its scheme's when it names none. */
export function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port);
  return protocol === 'https:' ? 443 : 80;
}
