import { getProxyForUrl } from 'proxy-from-env';
import { trustFor } from './local-service.ts';

/** Opens a WebSocket, through the proxy that the environment names for its address. */
export function openSocket(url: string, protocols: string[] = []): WebSocket {
  // Unlike fetch, a WebSocket does not look for a proxy itself. The variables are named after http.
  const http_url = url.replace(/^ws/, 'http');
  const proxy = getProxyForUrl(http_url);
  const options = { protocols, tls: trustFor(new URL(http_url)), ...(proxy !== '' && { proxy }) };
  // The types of the DOM do not have the options of Bun.
  return new WebSocket(url, options as unknown as string[]);
}
