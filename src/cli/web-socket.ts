import { getProxyForUrl } from 'proxy-from-env';

/** Opens a WebSocket, through the proxy that the environment names for its address. */
export function openSocket(url: string, protocols: string[] = []): WebSocket {
  // Unlike fetch, a WebSocket does not look for a proxy itself. The variables are named after http.
  const proxy = getProxyForUrl(url.replace(/^ws/, 'http'));
  // The types of the DOM do not have the options of Bun.
  return proxy === '' ? new WebSocket(url, protocols) : new WebSocket(url, { protocols, proxy } as unknown as string[]);
}
