import { HOP_BY_HOP } from '../../platform/http/hop-by-hop.ts';
import { isToken } from '../../platform/http/token.ts';

/** Claims about the client, which only the gateway may make, and the secret of the operator's proxy. */
const REPLACED = [
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-real-ip',
  'muster-player-id',
  'muster-proxy-secret',
];
/** Each of the two WebSockets has its own. */
const OF_HANDSHAKE = [
  'sec-websocket-extensions',
  'sec-websocket-key',
  'sec-websocket-protocol',
  'sec-websocket-version',
];
/** Credentials of pages of the API's origin, which game servers must not get from paths of that origin. */
const CREDENTIALS = ['authorization', 'cookie'];
const NOT_FOR_SERVERS = [...HOP_BY_HOP, ...REPLACED, ...OF_HANDSHAKE];
/** Headers that a client must not send under a name that a server takes for the same. */
const NOT_TO_IMITATE = new Set([...NOT_FOR_SERVERS, 'content-length']);

/** Headers of an answer that act on other hosts than the server's own. */
const OF_OTHER_HOSTS = ['clear-site-data'];
/** Headers of an answer that make the operator's proxy send a file or an answer of its own instead. */
const FOR_PROXIES = ['x-accel-redirect', 'x-sendfile'];
const NOT_FOR_CLIENTS = [...HOP_BY_HOP, ...OF_OTHER_HOSTS, ...FOR_PROXIES];
/** Headers of an answer that act on its whole origin, which is that of the API for paths. */
const OF_ORIGIN = [
  'accept-ch',
  'alt-svc',
  'critical-ch',
  'nel',
  'origin-agent-cluster',
  'origin-trial',
  'public-key-pins',
  'report-to',
  'reporting-endpoints',
  'sec-session-challenge',
  'sec-session-registration',
  'secure-session-challenge',
  'secure-session-registration',
  'service-worker-allowed',
  'set-cookie',
  'set-login',
  'speculation-rules',
  'strict-transport-security',
  'use-as-dictionary',
  'www-authenticate',
];

/** The client of a request, which the headers describe to the server. */
export interface Client {
  /** The address of the client, or of the last proxy that is not trusted. */
  address: string;
  /** The host that the client asked for, with its port. */
  host: string;
  proto: 'http' | 'https';
}

/** Returns the headers of a request for the server behind the gateway. */
export function toServerHeaders(received: Headers, client: Client, { is_by_path }: { is_by_path: boolean }): Headers {
  const headers = new Headers(received);
  removeNamedByConnection(headers);
  for (const name of NOT_FOR_SERVERS) headers.delete(name);
  removeImitations(headers);
  if (is_by_path) for (const name of CREDENTIALS) headers.delete(name);
  const { address, host, proto } = client;
  headers.set('host', host);
  headers.set('x-forwarded-for', address);
  headers.set('x-forwarded-host', host);
  headers.set('x-forwarded-proto', proto);
  headers.set('forwarded', `for=${quoteNode(address)};host="${host}";proto=${proto}`);
  // Bun accepts a length that is repeated, and refuses lengths that differ.
  const [length, ...repeated] = headers.get('content-length')?.split(',') ?? [];
  if (length !== undefined && repeated.length > 0) headers.set('content-length', length);
  // Without this header, fetch would ask for compressed answers, which the client may not understand.
  if (!headers.has('accept-encoding')) headers.set('accept-encoding', 'identity');
  return headers;
}

/** Changes the headers of a server's answer so that they act on nothing beyond the server. */
export function limitAnswerHeaders(headers: Headers, { is_by_path }: { is_by_path: boolean }): void {
  // The length of an answer in chunks means nothing (RFC 9112, 6.3), and the answer may be longer.
  if (headers.has('transfer-encoding')) headers.delete('content-length');
  removeNamedByConnection(headers);
  for (const name of NOT_FOR_CLIENTS) headers.delete(name);
  if (is_by_path) {
    for (const name of OF_ORIGIN) headers.delete(name);
    // A page of a game must not act as a page of the API's origin.
    headers.set('content-security-policy', 'sandbox allow-scripts allow-forms allow-popups allow-pointer-lock');
    headers.set('x-content-type-options', 'nosniff');
  }
  limitCookies(headers);
}

/** Limits cookies to the host of the server. With a domain, they would reach other games and the API. */
function limitCookies(headers: Headers): void {
  const cookies = headers.getSetCookie();
  if (cookies.length === 0) return;
  headers.delete('set-cookie');
  for (const cookie of cookies) headers.append('set-cookie', cookie.replace(/;\s*domain\s*(=[^;]*)?(?=;|$)/gi, ''));
}

/** Removes the headers that Connection names as those of one connection (RFC 9110, 7.6.1). */
function removeNamedByConnection(headers: Headers): void {
  for (const part of headers.get('connection')?.split(',') ?? []) {
    const name = part.trim();
    if (isToken(name)) headers.delete(name);
  }
}

/**
 * Removes headers such as Muster_Player_Id. CGI, WSGI, Rack and PHP give a program the names of headers with `_` in place of
 * `-`, and sometimes of other characters, so it could not tell such a header from that of the gateway.
 */
function removeImitations(headers: Headers): void {
  for (const name of [...headers.keys()]) {
    const imitated = name.replace(/[^a-z0-9]/g, '-');
    if (imitated !== name && NOT_TO_IMITATE.has(imitated)) headers.delete(name);
  }
}

/** Returns an address as a node of Forwarded (RFC 7239, 6). */
function quoteNode(address: string): string {
  return address.includes(':') ? `"[${address}]"` : address;
}
