import { isIP } from 'node:net';
import { HOP_BY_HOP } from '../http/hop-by-hop.ts';
import { type AllowList, isPublicAddress, isUsualPort, portOf, toBareHost } from './addresses.ts';

/** A problem of a target that its text alone shows. */
export type TargetProblem = 'invalid' | 'invalid-scheme' | 'invalid-port' | 'no-host' | 'invalid-ip';

/**
 * Returns the problem of a target, if any. Does not use the network: each request checks the addresses of the name, which
 * may change at any time.
 */
export function targetProblem(text: string, allowed: AllowList): TargetProblem | undefined {
  if (!URL.canParse(text)) return 'invalid';
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'invalid-scheme';
  if (url.username !== '' || url.password !== '') return 'invalid';
  const host = toBareHost(url.hostname);
  if (host === '') return 'no-host';
  const port = portOf(url);
  const address = knownAddressOf(host);
  if (address === undefined ? allowed.mayAllow(host, port) : allowed.allows({ host, port, address })) return undefined;
  if (address === undefined ? /(^|\.)local$/.test(host) : !isPublicAddress(address)) return 'invalid-ip';
  return isUsualPort(port) ? undefined : 'invalid-port';
}

/** Returns the address of a host that needs no lookup. */
function knownAddressOf(host: string): string | undefined {
  if (isIP(host) !== 0) return host;
  return /(^|\.)localhost$/.test(host) ? '127.0.0.1' : undefined;
}

/** Headers that only Muster sets: those of the connection, and those that say how to read the body. */
const OWN_HEADERS = new Set([...HOP_BY_HOP, 'accept-encoding', 'content-length', 'expect', 'host']);

/** Returns whether only Muster may set the header. */
export function isOwnHeader(name: string): boolean {
  return OWN_HEADERS.has(name.toLowerCase());
}
