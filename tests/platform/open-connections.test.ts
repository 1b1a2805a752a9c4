import { afterAll, beforeAll, expect, test } from 'bun:test';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { openDescriptorTable, readActivity, shutConnection } from '../../src/platform/http/ports/open-connections.ts';
import { clientKey, readConnectionUsers } from '../../src/platform/system/tcp-ports.ts';
import { HAS_IPV6 } from '../support/network/test-ports.ts';
import { waitFor } from '../support/wait.ts';

let server: Server;
let port: number;
beforeAll(async () => {
  server = createServer((socket) => socket.on('error', () => {}));
  await new Promise<void>((resolve) => server.listen(0, HAS_IPV6 ? '::' : '0.0.0.0', resolve));
  const address = server.address();
  port = typeof address === 'object' && address ? address.port : 0;
});
afterAll(() => void server.close());

async function open(host: string, localAddress: string): Promise<Socket> {
  const socket = connect({ host, port, localAddress });
  socket.on('error', () => {});
  await new Promise((resolve) => socket.once('connect', resolve));
  return socket;
}

test("open connections: clients' connections to the port are found with their address, also IPv4 inside IPv6; the service's own are not", async () => {
  using table = openDescriptorTable(new Set([port]));
  const before = (await table.read()).count;
  const sockets = [await open('127.0.0.1', '127.0.0.7')];
  if (HAS_IPV6) sockets.push(await open('::1', '::1'));
  const wanted = sockets.map(({ localPort, localFamily }) =>
    localFamily === 'IPv6'
      ? { address: '0:0:0:0:0:0:0:1', network: '0:0:0:0::/64', port: localPort }
      : { address: '127.0.0.7', network: '127.0.0.7', port: localPort },
  );
  const { count, connections } = await waitFor(async () => {
    const read = await table.read();
    return read.connections.length === sockets.length && read;
  }, 'the connections to be accepted');
  expect(connections.map(({ descriptor: _, ...client }) => client)).toEqual(
    expect.arrayContaining(wanted as unknown[]),
  );
  expect(count - before).toBe(2 * sockets.length);
  for (const socket of sockets) socket.destroy();
});

test('open connections: the user of each client of this machine is found, also for IPv4 inside IPv6', async () => {
  using table = openDescriptorTable(new Set([port]));
  const sockets = [await open('127.0.0.1', '127.0.0.7')];
  if (HAS_IPV6) sockets.push(await open('::1', '::1'), await open('::ffff:127.0.0.1', '::ffff:127.0.0.7'));
  const { connections } = await waitFor(async () => {
    const read = await table.read();
    return read.connections.length === sockets.length && read;
  }, 'the connections to be accepted');
  const users = await readConnectionUsers(new Set([port]));
  const own = process.getuid?.() ?? -1;
  expect(connections.map((connection) => users.get(clientKey(connection)))).toEqual(connections.map(() => own));
  for (const socket of sockets) socket.destroy();
});

test('open connections: descriptors are counted without reading them, where the kernel has their number', async () => {
  using table = openDescriptorTable(new Set([port]));
  const before = table.count();
  const sockets = [await open('127.0.0.1', '127.0.0.7'), await open('127.0.0.1', '127.0.0.7')];
  await waitFor(async () => (await table.read()).connections.length === 2, 'the connections to be accepted');
  expect(table.count()).toBe(before === undefined ? undefined : (await table.read()).count);
  for (const socket of sockets) socket.destroy();
});

test('open connections: one that is shut is closed on both sides; another that has its descriptor now is left alone', async () => {
  using table = openDescriptorTable(new Set([port]));
  await waitFor(async () => (await table.read()).connections.length === 0, 'other connections to end');
  const socket = await open('127.0.0.1', '127.0.0.7');
  const accepted = await waitFor(async () => (await table.read()).connections[0], 'the connection');
  expect(readActivity(accepted.descriptor)).toMatchObject({ is_open: true, has_client_sent: false });
  socket.write('x');
  await waitFor(() => readActivity(accepted.descriptor)?.has_client_sent, 'the received bytes to be counted');
  shutConnection({ ...accepted, port: accepted.port - 1 });
  expect(readActivity(accepted.descriptor)?.is_open).toBe(true);
  shutConnection(accepted);
  expect(readActivity(accepted.descriptor)?.is_open).not.toBe(true);
  await new Promise((resolve) => socket.once('close', resolve));
});
