/** Where the service's API listens, as servers that are processes of this machine reach it. */
export interface ApiAddress {
  host: string;
  port: number;
  /** Whether it is a loopback address, which in a container is the container's own. */
  is_loopback: boolean;
}

/** Returns the address in the URL of the API. A URL names no port if it is the usual one of its protocol. */
export function readApiAddress(api_url: string): ApiAddress {
  const { hostname, port, protocol } = new URL(api_url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const is_loopback = host === 'localhost' || host === '::1' || host.startsWith('127.');
  return { host, port: Number(port) || (protocol === 'https:' ? 443 : 80), is_loopback };
}
