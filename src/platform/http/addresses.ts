import ipaddr from 'ipaddr.js';
import { StartError } from '../errors.ts';

/** Above what any chain of proxies is long: whoever trusts everybody does not read forever. */
const HOPS_MAX = 64;
/** What a provider gives to one customer at least (RFC 6177): with it he has as many addresses as he likes. */
const IPV6_NETWORK_BITS = 64;
/** Some proxies write the port too. */
const WITH_PORT = /^(?:\[(?<v6>[^\]]+)\]|(?<v4>[\d.]+))(?::\d{1,5})?$/;

type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** An address, and how many of its bits count. */
export type Network = [Address, number];

/** What knows who has connected: Bun's server. */
export interface PeerServer {
  requestIP(request: Request): { address: string } | null;
}

/** Where requests come from. Nothing else in the service asks a connection or a header for it. */
export interface Addresses {
  /**
   * The client's address: the connection's; or, when that is a trusted proxy's, what it says in X-Forwarded-For, and so on
   * from right to left up to the first that is not trusted. Empty without a connection.
   */
  of(request: Request, server: PeerServer | null): string;
  /** Whether a request looks as if a proxy had sent it that is not trusted: all who come by it have one address. */
  isOfUnknownProxy(request: Request, server: PeerServer | null): boolean;
}

export function createAddresses(trusted: readonly Network[]): Addresses {
  const isTrusted = (address: Address) =>
    trusted.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits));

  return {
    of(request, server) {
      const connected = server?.requestIP(request)?.address ?? '';
      // As it is: most connections are of IPv4, and most services have no proxy.
      if (trusted.length === 0 && !connected.includes(':')) return connected;
      let client = parseAddress(connected);
      if (!client) return connected;
      const forwarded = trusted.length > 0 && isTrusted(client) ? request.headers.get('x-forwarded-for') : null;
      if (forwarded === null) return client.toString();
      for (const hop of hopsOf(forwarded)) {
        const address = parseHop(hop);
        // What cannot be read was not written by a proxy of ours: the last one that was is as far as we know.
        if (!address) break;
        client = address;
        if (!isTrusted(address)) break;
      }
      return client.toString();
    },
    isOfUnknownProxy(request, server) {
      if (!request.headers.has('x-forwarded-for')) return false;
      const connected = parseAddress(server?.requestIP(request)?.address ?? '');
      return connected !== undefined && connected.range() !== 'unicast' && !isTrusted(connected);
    },
  };
}

/** Under what an address is counted: of IPv6 its /64, since whoever has one has all of it. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const parsed = parseAddress(address);
  if (parsed === undefined || parsed.kind() === 'ipv4') return parsed?.toString() ?? address;
  const groups = parsed.toByteArray().map((byte, index) => (index * 8 < IPV6_NETWORK_BITS ? byte : 0));
  return `${ipaddr.fromByteArray(groups)}/${IPV6_NETWORK_BITS}`;
}

/** Reads `10.0.0.0/8, fd00::1`: addresses and networks; undefined is none. Throws {@link StartError} for anything else, and for everybody. */
export function readTrustedProxies(text: string | undefined): Network[] {
  if (text === undefined) return [];
  return text.split(',').map((part) => {
    const written = part.trim();
    const network = readNetwork(written);
    const expected =
      'expected addresses and networks like 10.0.0.5, 192.168.0.0/16 or fd00::/8, with commas in between';
    if (!network) throw new StartError(`MUSTER_TRUSTED_PROXIES has "${written}": ${expected}.`);
    if (network[1] === 0) {
      throw new StartError(
        `MUSTER_TRUSTED_PROXIES has "${written}", which is everybody: then anybody could say that he has any address. Name your proxies.`,
      );
    }
    return network;
  });
}

function readNetwork(written: string): Network | undefined {
  if (ipaddr.IPv4.isValidCIDRFourPartDecimal(written) || ipaddr.IPv6.isValidCIDR(written)) {
    const [address, bits] = ipaddr.parseCIDR(written);
    // Peers of IPv4 are known by their IPv4 address, so networks must be too.
    const is_mapped = address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= 96;
    return is_mapped ? [address.toIPv4Address(), bits - 96] : [address, bits];
  }
  const address = parseAddress(written);
  return address && [address, address.kind() === 'ipv4' ? 32 : 128];
}

/** From right to left. */
function* hopsOf(forwarded: string): Generator<string> {
  let end = forwarded.length;
  for (let hops = 0; hops < HOPS_MAX && end >= 0; hops += 1) {
    const comma = end === 0 ? -1 : forwarded.lastIndexOf(',', end - 1);
    const hop = forwarded.slice(comma + 1, end).trim();
    // Elements of a list may be empty (RFC 9110, 5.6.1): of a header that was sent with nothing in it, for one.
    if (hop !== '') yield hop;
    end = comma;
  }
}

function parseHop(text: string): Address | undefined {
  const { v4, v6 } = WITH_PORT.exec(text)?.groups ?? {};
  return parseAddress(v4 ?? v6 ?? text);
}

/** An address as it is meant: IPv4 inside IPv6 is IPv4. Undefined for any other text, also for what only some programs take for one. */
export function parseAddress(text: string): Address | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  if (!ipaddr.IPv6.isValid(text)) return undefined;
  const address = ipaddr.IPv6.parse(text);
  // Which interface of ours it came by says nothing of the client.
  delete address.zoneId;
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}
