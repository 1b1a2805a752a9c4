import { networkInterfaces } from 'node:os';
import { isSameSecret } from '../constant-time.ts';
import { StartError } from '../errors.ts';
import { createNetworkCheck, type Network, normalizeAddress, parseAddress, parseNetwork } from '../networks.ts';

/** Longer than any chain of proxies, so that a long header costs little even if every proxy is trusted. */
const HOPS_MAX = 64;
/** Some proxies add the port. */
const WITH_PORT = /^(?:\[(?<v6>[^\]]+)\]|(?<v4>[\d.]+))(?::\d{1,5})?$/;

/** The part of Bun's server that knows the client of a connection. */
export interface PeerServer {
  requestIP(request: Request): { address: string; port: number } | null;
}

/** Returns where requests come from. No other code reads that from a connection or a header. */
export interface Addresses {
  /**
   * Returns the client's address: that of the connection or, behind trusted proxies, the last address in X-Forwarded-For that
   * is not a trusted proxy. Empty without a connection.
   */
  clientOf(request: Request, server: PeerServer | null): string;
  /** Returns whether the client uses https: by its connection or, behind a trusted proxy, by the last X-Forwarded-Proto. */
  isHttps(request: Request, server: PeerServer | null): boolean;
  /** Returns whether a request seems to come from an untrusted proxy, whose clients all have its address. */
  isOfUntrustedProxy(request: Request, server: PeerServer | null): boolean;
}

/** `secret`: what trusted proxies send in the header Muster-Proxy-Secret; undefined if their address is enough. */
export function createAddresses(trusted: readonly Network[], secret?: string): Addresses {
  const isTrusted = createNetworkCheck(trusted);
  /** Returns whether a request from a trusted address comes from the proxy there, and not from a game server beside it. */
  const isOfProxy = ({ headers }: Request) =>
    secret === undefined || isSameSecret(headers.get('muster-proxy-secret') ?? '', secret);

  return {
    clientOf(request, server) {
      const connected = server?.requestIP(request)?.address ?? '';
      let client = normalizeAddress(connected);
      if (client === undefined) return connected;
      const is_proxy = trusted.length > 0 && isTrusted(client) && isOfProxy(request);
      const forwarded = is_proxy ? request.headers.get('x-forwarded-for') : null;
      if (forwarded === null) return client;
      for (const hop of hopsOf(forwarded)) {
        const address = toAddress(hop);
        // A trusted proxy would not write this, so the address before it is the last one that is known.
        if (address === undefined) break;
        client = address;
        if (!isTrusted(address)) break;
      }
      return client;
    },
    isHttps(request, server) {
      const forwarded = trusted.length > 0 ? request.headers.get('x-forwarded-proto') : null;
      if (forwarded !== null) {
        const connected = normalizeAddress(server?.requestIP(request)?.address ?? '');
        const proto = forwarded.split(',').at(-1)?.trim().toLowerCase();
        const is_known = proto === 'https' || proto === 'http';
        if (is_known && connected && isTrusted(connected) && isOfProxy(request)) return proto === 'https';
      }
      return request.url.startsWith('https:');
    },
    isOfUntrustedProxy(request, server) {
      if (!request.headers.has('x-forwarded-for')) return false;
      const connected = parseAddress(server?.requestIP(request)?.address ?? '');
      if (!connected || connected.range() === 'unicast') return false;
      return !(isTrusted(connected.toString()) && isOfProxy(request));
    },
  };
}

/**
 * Parses addresses and networks like `10.0.0.0/8, fd00::1`; undefined gives an empty list. Throws {@link StartError}
 * for other texts, and for a network of all addresses.
 */
export function readTrustedProxies(text: string | undefined): Network[] {
  if (text === undefined) return [];
  return text.split(',').map((part) => {
    const written = part.trim();
    const network = parseNetwork(written);
    const expected =
      'expected addresses and networks like 10.0.0.5, 192.168.0.0/16 or fd00::/8, with commas in between';
    if (!network) throw new StartError(`MUSTER_TRUSTED_PROXIES has "${written}": ${expected}.`);
    if (network[1] === 0) {
      throw new StartError(
        `MUSTER_TRUSTED_PROXIES has "${written}", which contains every address, so any client could claim any address. List only your proxies.`,
      );
    }
    return network;
  });
}

/**
 * Throws {@link StartError} if a trusted network has an address of this machine. It then needs a secret: game servers of the
 * machine connect from there too, and could claim any address.
 */
export function assertProxySecret(trusted: readonly Network[]): void {
  // Most services have no proxy, so their start need not parse the addresses of this machine.
  if (trusted.length === 0) return;
  const isTrusted = createNetworkCheck(trusted);
  const own = Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address));
  for (const text of ['127.0.0.1', '::1', ...own]) {
    const address = normalizeAddress(text);
    if (address === undefined || !isTrusted(address)) continue;
    throw new StartError(
      `MUSTER_TRUSTED_PROXIES has ${text}, an address of this machine, which its game servers have too: set MUSTER_PROXY_SECRET, and let the proxy send it in the header Muster-Proxy-Secret.`,
    );
  }
}

/** Yields the hops of X-Forwarded-For from right to left. */
function* hopsOf(forwarded: string): Generator<string> {
  let end = forwarded.length;
  for (let hops = 0; hops < HOPS_MAX && end >= 0; hops += 1) {
    const comma = end === 0 ? -1 : forwarded.lastIndexOf(',', end - 1);
    const hop = forwarded.slice(comma + 1, end).trim();
    // Elements of a list may be empty (RFC 9110, 5.6.1), for instance those of an empty header.
    if (hop !== '') yield hop;
    end = comma;
  }
}

/** Returns the address of a hop, without its port; undefined for any other text. */
function toAddress(hop: string): string | undefined {
  const address = normalizeAddress(hop);
  if (address !== undefined) return address;
  const { v4, v6 } = WITH_PORT.exec(hop)?.groups ?? {};
  return normalizeAddress(v4 ?? v6 ?? '');
}
