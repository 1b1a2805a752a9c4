import type { DatabaseAddress } from '../../../src/platform/database/database.ts';
import { openTcpProxy, type TcpProxy } from './tcp-proxy.ts';

/** Opens a TCP proxy to a database. It can cut clients of `url` off, but not those of the original address. */
export async function openDatabaseProxy(
  address: DatabaseAddress,
): Promise<{ url: string; proxy: TcpProxy } & AsyncDisposable> {
  const url = new URL('url' in address ? address.url : `postgres://${address.user}@127.0.0.1/${address.database}`);
  const target = 'url' in address ? { host: url.hostname, port: Number(url.port || 5432) } : { path: address.path };
  const proxy = await openTcpProxy(target);
  url.host = `127.0.0.1:${proxy.port}`;
  return { url: url.href, proxy, [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose]() };
}
