import { portOf } from '../../../platform/outbound/addresses.ts';

/** Where the service's API listens, as servers that are processes of this machine reach it. */
export interface ApiAddress {
  host: string;
  port: number;
  /** Whether it is a loopback address, which in a container is the container's own. */
  is_loopback: boolean;
}

/** Returns the address in the URL of the API. */
export function readApiAddress(api_url: string): ApiAddress {
  const url = new URL(api_url);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const is_loopback = host === 'localhost' || host === '::1' || host.startsWith('127.');
  return { host, port: portOf(url), is_loopback };
}

/** Replaces the URL of the API in a server's variables by the one at which the server reaches it. */
export function replaceAddress(environment: Record<string, string>, { from, to }: { from: string; to: string }) {
  const replace = (value: string) =>
    value === from || value.startsWith(`${from}/`) ? to + value.slice(from.length) : value;
  return Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, replace(value)]));
}
