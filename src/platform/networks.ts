import { BlockList, isIP, isIPv4 } from 'node:net';
import ipaddr from 'ipaddr.js';

/** The smallest IPv6 network that providers assign to a customer (RFC 6177). The customer may use all of its addresses. */
const IPV6_NETWORK_BITS = 64;

export const PORT_MAX = 65_535;

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** An address, and how many of its first bits all addresses of the network share. */
export type Network = [Address, number];

/**
 * Parses an address. IPv4 inside IPv6 becomes IPv4. Returns undefined for any other text, including spellings that only
 * some programs accept.
 */
export function parseAddress(text: string): Address | undefined {
  const version = isIP(text);
  if (version === 4) return ipaddr.IPv4.parse(text);
  if (version !== 6) return undefined;
  const address = ipaddr.IPv6.parse(text);
  // The zone names an interface of this machine, not the client's.
  delete address.zoneId;
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

/** Returns an address in its usual spelling, as `parseAddress` reads it; undefined for any other text. */
export function normalizeAddress(text: string): string | undefined {
  // An address of IPv4 has only one spelling.
  return isIPv4(text) ? text : parseAddress(text)?.toString();
}

/**
 * Parses a network like `10.0.0.0/8` or `fd00::/8`, or a single address. IPv4 inside IPv6 becomes IPv4. Returns undefined
 * for any other text.
 */
export function parseNetwork(text: string): Network | undefined {
  if (ipaddr.IPv4.isValidCIDRFourPartDecimal(text) || ipaddr.IPv6.isValidCIDR(text)) {
    const [address, bits] = ipaddr.parseCIDR(text);
    const is_mapped = address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= 96;
    return is_mapped ? [address.toIPv4Address(), bits - 96] : [address, bits];
  }
  const address = parseAddress(text);
  return address && [address, address.kind() === 'ipv4' ? 32 : 128];
}

export function isWithin(address: Address, [network, bits]: Network): boolean {
  return network.kind() === address.kind() && address.match(network, bits);
}

/** Creates the function that returns whether a normalized address is in one of the networks. */
export function createNetworkCheck(networks: readonly Network[]): (address: string) => boolean {
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const [address, bits] of networks) {
    const kind = address.kind();
    lists[kind].addSubnet(address.toString(), bits, kind);
  }
  return (address) => {
    const kind = isIPv4(address) ? 'ipv4' : 'ipv6';
    return lists[kind].check(address, kind);
  };
}

/**
 * Returns the key under which an address is counted: the address, or for IPv6 its /64 network, because one client may
 * use all of it.
 */
export function countingKeyOf(address: string): string {
  if (!address.includes(':')) return address;
  const parsed = parseAddress(address);
  if (parsed === undefined || parsed.kind() === 'ipv4') return parsed?.toString() ?? address;
  const bytes = parsed.toByteArray().map((byte, index) => (index * 8 < IPV6_NETWORK_BITS ? byte : 0));
  return `${ipaddr.fromByteArray(bytes)}/${IPV6_NETWORK_BITS}`;
}

/**
 * Creates the function that returns whether all programs of this machine connect from an address: a loopback address, or
 * that of the host at which the service listens. Game servers of all tenants share them.
 */
export function createMachineAddressCheck(host: string): (address: string) => boolean {
  const own = new Set(['127.0.0.1', '::1', host].map(normalizeAddress));
  return (address) => {
    const normalized = normalizeAddress(address);
    return normalized !== undefined && own.has(normalized);
  };
}

/** Returns whether a host to listen on means all addresses of this machine. */
export function isAnyAddress(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** Returns whether a name is one that only the machine itself, or a browser on it, resolves. */
export function isLocalName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost');
}

/** Writes a name or an address as the host of a URL, where an IPv6 address has brackets. */
export function toUrlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
