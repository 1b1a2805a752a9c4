import { afterAll, beforeAll, expect, test } from 'bun:test';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { Events } from '../../src/platform/events.ts';
import { startLimitingConnections } from '../../src/platform/http/ports/connection-limits.ts';
import { waitFor } from '../support/wait.ts';

const PER_ADDRESS_MAX = 5;
const CLIENT = '127.0.0.12';
/** A refusal ends after two seconds. */
const SLOW_FOR_MS = 1_500;
/** Readings wait for at least one turn of the event loop, and may take a hundredth of the time: 20 s would pass between them. */
const TURN_MS = 200;
const ADMITTED_WITHIN_MS = 12_000;

let server: Server;
let port: number;
beforeAll(async () => {
  server = createServer((socket) => socket.on('error', () => {}).pipe(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  port = typeof address === 'object' && address ? address.port : 0;
});
afterAll(() => void server.close());

function open(): Socket {
  const socket = connect({ host: '127.0.0.1', port, localAddress: CLIENT });
  socket.on('error', () => {});
  socket.resume();
  socket.write('x');
  return socket;
}

/** Makes each turn of the event loop take long for a while. */
function slowEventLoop(): void {
  const ends_at = performance.now() + SLOW_FOR_MS;
  (function takeLong(): void {
    const turn_ends_at = performance.now() + TURN_MS;
    while (performance.now() < turn_ends_at);
    if (performance.now() < ends_at) setImmediate(takeLong);
  })();
}

test('connection limits: an address may connect again in time, also while the connections take long to read', async () => {
  const sockets = Array.from({ length: 2 * PER_ADDRESS_MAX }, open);
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('data', resolve))));
  const ending = new AbortController();
  const loop = startLimitingConnections({
    host: '127.0.0.1',
    ports: [port],
    connections_per_address_max: PER_ADDRESS_MAX,
    trusted_proxies: [],
    events: { emit() {} } as unknown as Events,
    signal: ending.signal,
  });
  await Promise.any(sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve))));
  const closed_at = performance.now();
  slowEventLoop();
  await Bun.sleep(SLOW_FOR_MS);
  for (const socket of sockets) socket.destroy();
  await waitFor(async () => {
    const next = open();
    const answer = new Promise<true>((resolve) => next.once('data', () => resolve(true)));
    const is_admitted = await Promise.race([answer, Bun.sleep(100)]);
    next.destroy();
    return is_admitted ?? false;
  }, 'the address to be admitted');
  expect(performance.now() - closed_at).toBeLessThan(ADMITTED_WITHIN_MS);
  ending.abort();
  await loop.stopped;
});
