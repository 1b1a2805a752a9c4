import type { Client } from './forwarded-headers.ts';
import type { ClientTraffic } from './traffic.ts';

/** Below it, paths lead to game servers: /gateway/SERVER-PORT/… */
export const GATEWAY_PATH = '/gateway/';

/** A request to a game server: the port it names, and the rest of its address. */
export interface NamedRequest {
  name: string;
  /** The host that the client asked for, with its port. */
  host: string;
  /** Path and query for the server. */
  target: string;
  /** Whether a path of the API's own host names the port. Its answers share the API's origin. */
  is_by_path: boolean;
}

/** A request to pass on to a game server. */
export interface PassedRequest {
  server_id: string;
  /** Host and port of the server. */
  server_address: string;
  /** Path and query for the server. */
  target: string;
  is_by_path: boolean;
  /** Whether the gateway reports the players at this port. */
  has_presence: boolean;
  client: Client;
  traffic: ClientTraffic;
  /** Called when its answer has ended, or its WebSocket is closed. Repeating it is harmless. */
  onEnd(): void;
}

/** Reads the name of a port from a host below the domain of servers; undefined for any other host. */
export function readHostName(url: string, servers_domain: string): NamedRequest | undefined {
  // Most requests are for the API, and need not be parsed here.
  if (!url.includes(servers_domain)) return undefined;
  const { host, hostname, pathname, search } = new URL(url);
  const domain = hostname.toLowerCase().replace(/\.$/, '');
  if (!domain.endsWith(`.${servers_domain}`)) return undefined;
  const name = domain.slice(0, -servers_domain.length - 1);
  return { name, host, target: `${pathname}${search}`, is_by_path: false };
}

/** Reads the name of a port from a path below {@link GATEWAY_PATH}; undefined for any other path. */
export function readPathName(url: string): NamedRequest | undefined {
  if (!url.includes(GATEWAY_PATH)) return undefined;
  const { host, pathname, search } = new URL(url);
  if (!pathname.startsWith(GATEWAY_PATH)) return undefined;
  const path = pathname.slice(GATEWAY_PATH.length);
  const slash = path.indexOf('/');
  const [name, rest] = slash === -1 ? [path, '/'] : [path.slice(0, slash), path.slice(slash)];
  return { name: name.toLowerCase(), host, target: `${rest}${search}`, is_by_path: true };
}
