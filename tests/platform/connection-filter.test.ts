import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { refuseNetworks } from '../../src/platform/http/ports/connection-filter.ts';
import { openDescriptorTable } from '../../src/platform/http/ports/open-connections.ts';
import { HAS_IPV6 } from '../support/network/test-ports.ts';
import { waitFor } from '../support/wait.ts';

const CAP_NET_ADMIN = 12n;
const [, CAPABILITIES] = /^CapEff:\t(\w+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
const MAY_FILTER = ((BigInt(`0x${CAPABILITIES}`) >> CAP_NET_ADMIN) & 1n) === 1n;
const LOOPBACK_NETWORK = '0:0:0:0::/64';
const ADDRESSES = ['127.0.0.5', '127.0.0.6', ...(HAS_IPV6 ? ['::1'] : [])];

let server: Server;
let port: number;
let listener: number;
beforeAll(async () => {
  server = createServer((socket) => socket.on('error', () => {}).pipe(socket));
  await new Promise<void>((resolve) => server.listen(0, HAS_IPV6 ? '::' : '0.0.0.0', resolve));
  const address = server.address();
  port = typeof address === 'object' && address ? address.port : 0;
  using table = openDescriptorTable(new Set([port]));
  const { listeners } = await table.read();
  expect(listeners).toHaveLength(1);
  listener = listeners[0] ?? -1;
});
afterAll(() => void server.close());

function open(address: string): Socket {
  const socket = connect({ host: address === '::1' ? '::1' : '127.0.0.1', port, localAddress: address });
  socket.on('error', () => {});
  return socket;
}

const CASES: { refused: string[]; waiting: string[] }[] = [
  { refused: ['127.0.0.5'], waiting: ['127.0.0.5'] },
  { refused: ['10.0.0.1', '127.0.0.6', '2001:db8:0:0::/64'], waiting: ['127.0.0.6'] },
  { refused: ['2001:db8:0:0::/64', '10.0.0.1'], waiting: [] },
  { refused: [LOOPBACK_NETWORK], waiting: HAS_IPV6 ? ['::1'] : [] },
  {
    refused: ['10.0.0.1', '127.0.0.6', '2001:db8:0:0::/64', LOOPBACK_NETWORK],
    waiting: ['127.0.0.6', ...(HAS_IPV6 ? ['::1'] : [])],
  },
];
test.skipIf(!MAY_FILTER).each(CASES)(
  'connection filter: $refused cannot open a connection until they are allowed again; others can',
  async ({ refused, waiting }) => {
    const before = open('127.0.0.5');
    await waitFor(() => before.readyState === 'open', 'the connection before the filter');
    refuseNetworks(listener, refused);
    const sockets = new Map(ADDRESSES.map((address) => [address, open(address)]));
    const isOpen = (address: string) => sockets.get(address)?.readyState === 'open';
    const others = [...sockets].filter(([address]) => !waiting.includes(address)).map(([, socket]) => socket);
    for (const socket of [before, ...others]) {
      socket.write('x');
      await new Promise((resolve) => socket.once('data', resolve));
    }
    expect(waiting.filter(isOpen)).toEqual([]);
    refuseNetworks(listener, []);
    await waitFor(() => ADDRESSES.every(isOpen), 'all connections to open');
    for (const socket of [before, ...sockets.values()]) socket.destroy();
  },
);
