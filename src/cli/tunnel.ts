import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { getProxyForUrl } from 'proxy-from-env';
import { hostOf } from './url-parts.ts';

const HEAD_END = '\r\n\r\n';
const HEAD_BYTES_MAX = 16_384;

/** Opens a connection to the host of an address, through the proxy that the environment names for it. */
export async function openTunnel(address: URL, signal: AbortSignal): Promise<Socket> {
  const host = hostOf(address);
  const port = Number(address.port) || 443;
  const proxy = getProxyForUrl(address.href);
  if (proxy === '') return await opened(connect({ host, port, signal }), signal);
  const proxy_address = new URL(proxy);
  const { hostname, port: proxy_port, username, password } = proxy_address;
  const socket = await opened(connect({ host: hostOf(proxy_address), port: Number(proxy_port) || 80, signal }), signal);
  const secret = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64');
  const lines = [
    `CONNECT ${address.hostname}:${port} HTTP/1.1`,
    `Host: ${address.hostname}:${port}`,
    ...(username === '' ? [] : [`Proxy-Authorization: Basic ${secret}`]),
  ];
  socket.write(lines.join('\r\n') + HEAD_END);
  let head = '';
  while (!head.includes(HEAD_END) && head.length < HEAD_BYTES_MAX) {
    const [bytes] = (await once(socket, 'data', { signal })) as [Buffer];
    head += bytes.toString('latin1');
  }
  const [status_line = ''] = head.split('\r\n');
  if (/^HTTP\/1\.\d 2\d\d/.test(status_line)) return socket;
  socket.destroy();
  throw new Error(`the proxy ${hostname}:${proxy_port} answered "${status_line}"`);
}

async function opened(socket: Socket, signal: AbortSignal): Promise<Socket> {
  await once(socket, 'connect', { signal });
  return socket;
}
