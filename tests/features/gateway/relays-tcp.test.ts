import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { Connection } from '../../../src/features/gateway/relays/connection.ts';
import { openTcpRelay, type TcpRelayOptions } from '../../../src/features/gateway/relays/tcp-relay.ts';
import { ServerSlots } from '../../../src/features/gateway/server-slots.ts';
import { createTraffic } from '../../../src/features/gateway/traffic.ts';
import { Slots } from '../../../src/platform/limits/slots.ts';
import { findFreePort } from '../../support/network/test-ports.ts';
import { fingerprintAt, makeCertificate, openTls } from '../../support/network/tls.ts';
import { waitFor } from '../../support/wait.ts';

const HOST = '127.0.0.1';
const BYTES = { of_server: 1e9, of_address: 1e9 };
const traffic = createTraffic({ limits: { is_on: true, scale: 1 }, bytes_a_minute: BYTES }).ofServer('a server');
const MANY = { open_max: 1_000, open_of_address_max: 1_000, opened_per_second_max: 1_000 };
const KINDS = ['without TLS', 'with TLS'] as const;

let key_pair: { certificate: string; key: string };
beforeAll(async () => {
  key_pair = await makeCertificate(['localhost']);
});

/** A game server that echoes, and answers the end of the client with 'end'. */
function startEcho() {
  const open = new Set<Bun.Socket<undefined>>();
  const listener = Bun.listen({
    hostname: HOST,
    port: 0,
    allowHalfOpen: true,
    socket: {
      open: (socket) => void open.add(socket),
      data: (socket, bytes) => void socket.write(bytes),
      end: (socket) => void socket.end('end'),
      close: (socket) => void open.delete(socket),
    },
  });
  return { port: listener.port, open, [Symbol.dispose]: () => listener.stop(true) };
}

interface RelayChanges
  extends Partial<Pick<TcpRelayOptions, 'readCertificate' | 'proxy_protocol' | 'listen' | 'silence'>> {
  limits?: Partial<typeof MANY>;
  slots?: Slots;
}

function startRelay(target_port: number, { limits = {}, slots = new Slots(1_000), ...more }: RelayChanges = {}) {
  const port = findFreePort();
  const relay = openTcpRelay({
    listen: { hostname: HOST, port },
    target: { hostname: HOST, port: target_port },
    slots: new ServerSlots({ ...MANY, ...limits }, slots, 'a game'),
    traffic,
    ...more,
  });
  return { port, slots, [Symbol.dispose]: () => relay.close() };
}

/** A client that collects what it receives. */
class Client {
  readonly received: Buffer[] = [];
  bytes = 0;
  has_ended = false;
  is_closed = false;

  constructor(readonly socket: Socket) {
    socket.on('data', (bytes: Buffer) => {
      this.received.push(bytes);
      this.bytes += bytes.length;
    });
    socket.on('end', () => {
      this.has_ended = true;
    });
    socket.on('close', () => {
      this.is_closed = true;
    });
    socket.on('error', () => {});
  }

  text = () => Buffer.concat(this.received).toString();
  [Symbol.dispose] = () => void this.socket.destroy();
}

function open(port: number, kind: (typeof KINDS)[number], host = HOST): Client {
  const options = { host, port, allowHalfOpen: true, rejectUnauthorized: false };
  return new Client(kind === 'with TLS' ? connectTls(options) : connect(options));
}

const certificateFor = (kind: (typeof KINDS)[number]) =>
  kind === 'with TLS' ? { readCertificate: () => key_pair } : {};

describe('relays: a TCP relay refuses', () => {
  test('to open at a port that is taken', () => {
    using echo = startEcho();
    using relay = startRelay(echo.port);
    const again = () =>
      openTcpRelay({
        listen: { hostname: HOST, port: relay.port },
        target: { hostname: HOST, port: echo.port },
        slots: new ServerSlots(MANY, relay.slots, 'a game'),
        traffic,
      });
    expect(again).toThrow(expect.objectContaining({ code: 'EADDRINUSE' }));
  });

  const LIMITS = [
    { name: 'connections of one address over its limit', limits: { open_of_address_max: 2 } },
    { name: 'connections of a server over its limit', limits: { open_max: 2 } },
    { name: 'new connections over the limit for a second', limits: { opened_per_second_max: 2 } },
    { name: 'connections of a game that has half of the slots', slots: new Slots(4) },
  ];
  for (const { name, ...limited } of LIMITS) {
    test(name, async () => {
      using echo = startEcho();
      using relay = startRelay(echo.port, limited);
      using _first = open(relay.port, 'without TLS');
      using second = open(relay.port, 'without TLS');
      await waitFor(() => echo.open.size === 2, 'two connections');
      using third = open(relay.port, 'without TLS');
      await waitFor(() => third.is_closed, 'the third to be closed');
      expect(echo.open.size).toBe(2);
      second.socket.write('still here');
      await waitFor(() => second.text() === 'still here', 'the second to continue');
    });
  }

  test('TLS clients while there is no certificate, and clients that do not speak TLS', async () => {
    using echo = startEcho();
    using without = startRelay(echo.port, { readCertificate: () => undefined });
    using early = open(without.port, 'with TLS');
    await waitFor(() => early.is_closed, 'the client to be refused');
    using relay = startRelay(echo.port, certificateFor('with TLS'));
    using plain = open(relay.port, 'without TLS');
    plain.socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    await waitFor(() => plain.is_closed, 'the plain client to be refused');
    expect([echo.open.size, relay.slots.taken]).toEqual([0, 0]);
  });

  test('TLS clients while the certificate cannot be used, and frees their slots', async () => {
    using echo = startEcho();
    using relay = startRelay(echo.port, { readCertificate: () => ({ certificate: 'none', key: 'none' }) });
    using client = open(relay.port, 'with TLS');
    await waitFor(() => client.is_closed, 'the client to be refused');
    expect([echo.open.size, relay.slots.taken]).toEqual([0, 0]);
  });

  for (const kind of KINDS) {
    test(`clients ${kind} that have reset the connection before it is accepted, and has no slot for them`, async () => {
      using echo = startEcho();
      using relay = startRelay(echo.port, { ...certificateFor(kind), proxy_protocol: 'v2' });
      // Blocks this process, which accepts the connection afterwards.
      const reset = `import { connect } from 'node:net';
        const client = connect(${relay.port}, '${HOST}', () => client.resetAndDestroy());`;
      expect(Bun.spawnSync([process.execPath, '-e', reset]).exitCode).toBe(0);
      using client = open(relay.port, kind);
      client.socket.write('hello');
      await waitFor(() => client.text().endsWith('hello'), 'the next client to be served');
      expect([echo.open.size, relay.slots.taken]).toEqual([1, 1]);
    });
  }

  test('connections to a server that does not listen, and frees their slots', async () => {
    using relay = startRelay(findFreePort());
    using client = open(relay.port, 'without TLS');
    await waitFor(() => client.is_closed, 'the client to be closed');
    expect(relay.slots.taken).toBe(0);
  });
});

for (const kind of KINDS) {
  describe(`relays: a TCP relay ${kind}`, () => {
    let echo: ReturnType<typeof startEcho>;
    let relay: ReturnType<typeof startRelay>;
    beforeAll(() => {
      echo = startEcho();
      relay = startRelay(echo.port, certificateFor(kind));
    });
    afterAll(() => {
      relay[Symbol.dispose]();
      echo[Symbol.dispose]();
    });

    test('passes on the end of the client, and then what the server still sends', async () => {
      using client = open(relay.port, kind);
      client.socket.end('hello ');
      await waitFor(() => client.has_ended, 'the end');
      expect(client.text()).toBe('hello end');
      await waitFor(() => relay.slots.taken === 0 && echo.open.size === 0, 'both sides to be closed');
    });

    test('closes the server side when the client is lost, and the client side when the server is lost', async () => {
      using client = open(relay.port, kind);
      using other = open(relay.port, kind);
      client.socket.write('a');
      other.socket.write('b');
      await waitFor(() => client.text() === 'a' && other.text() === 'b', 'two connections');
      client.socket.destroy();
      await waitFor(() => echo.open.size === 1, 'the server side to be closed');
      for (const socket of echo.open) socket.terminate();
      await waitFor(() => other.has_ended || other.is_closed, 'the client side to be closed');
      other.socket.end();
      await waitFor(() => relay.slots.taken === 0, 'the slots to be free');
    });

    test('passes on large data to a client that reads late, and keeps little of it meanwhile', async () => {
      const size = 48 * 1024 ** 2;
      let sent = 0;
      const chunk = Buffer.alloc(1024 ** 2, 7);
      const fill = (socket: Bun.Socket<undefined>) => {
        while (sent < size) {
          const piece = chunk.subarray(0, Math.min(chunk.length, size - sent));
          const written = socket.write(piece);
          sent += Math.max(0, written);
          if (written < piece.length) return;
        }
        socket.end();
      };
      using source = Bun.listen({
        hostname: HOST,
        port: 0,
        allowHalfOpen: true,
        socket: { open: fill, drain: fill, data() {} },
      });
      using large = startRelay(source.port, certificateFor(kind));
      using client = open(large.port, kind);
      client.socket.pause();
      let before = -1;
      // The source stops once the buffers of the kernel and the relay are full.
      await waitFor(async () => {
        const is_still = sent > 0 && sent === before;
        before = sent;
        await Bun.sleep(100);
        return is_still;
      }, 'the source to stop');
      expect(sent).toBeLessThan(size);
      client.socket.resume();
      await waitFor(() => client.has_ended, 'the end');
      expect(client.bytes).toBe(size);
    });
  });
}

describe('relays: a silent connection is closed on both sides,', () => {
  const HOUR_MS = 3_600_000;
  test('after its time, unless it is used', async () => {
    using echo = startEcho();
    using relay = startRelay(echo.port, { silence: { max_ms: 1_000, half_closed_max_ms: HOUR_MS } });
    using silent = open(relay.port, 'without TLS');
    using used = open(relay.port, 'without TLS');
    await waitFor(() => echo.open.size === 2, 'two connections');
    await waitFor(() => {
      used.socket.write('.');
      return silent.is_closed;
    }, 'the silent one to be closed');
    await waitFor(() => echo.open.size === 1, 'its server side to be closed');
    expect(used.is_closed).toBe(false);
  });

  test('sooner after one side has sent everything', async () => {
    // A server that never ends its side.
    using listener = Bun.listen({ hostname: HOST, port: 0, allowHalfOpen: true, socket: { data() {}, end() {} } });
    using relay = startRelay(listener.port, { silence: { max_ms: HOUR_MS, half_closed_max_ms: 100 } });
    using ended = open(relay.port, 'without TLS');
    using silent = open(relay.port, 'without TLS');
    await waitFor(() => relay.slots.taken === 2, 'two connections');
    ended.socket.end('all');
    await waitFor(() => ended.is_closed, 'the ended one to be closed');
    expect([silent.is_closed, relay.slots.taken]).toEqual([false, 1]);
  });
});

test('relays: a connection whose reader is slow is not silent while it reads', async () => {
  let is_over = false;
  const nothing = () => {};
  const client = { setKeepAlive: nothing, setNoDelay: nothing, terminate: nothing } as unknown as Bun.Socket<unknown>;
  const connection = new Connection(client, {
    target: { hostname: HOST, port: 1 },
    header: undefined,
    traffic: traffic.ofClient(HOST),
    onEnd() {
      is_over = true;
    },
  });
  const began = performance.now();
  await waitFor(() => performance.now() > began + 1, 'some time to pass');
  connection.drainClient();
  const silence = { max_ms: 1_000, half_closed_max_ms: 1_000 };
  connection.closeIfSilent(began + 1 + silence.max_ms, silence);
  expect(is_over).toBe(false);
});

test('relays: new connections get a renewed certificate, and open ones continue', async () => {
  using echo = startEcho();
  let current = await makeCertificate(['localhost']);
  using relay = startRelay(echo.port, { readCertificate: () => current });
  const first = await fingerprintAt(relay.port, 'localhost');
  using client = new Client(await openTls(relay.port, 'localhost'));
  current = await makeCertificate(['localhost']);
  const second = await fingerprintAt(relay.port, 'localhost');
  expect(second).not.toBe(first);
  client.socket.write('still here');
  await waitFor(() => client.text() === 'still here', 'the open connection to continue');
});

describe('relays: with the PROXY protocol, a server gets the address of the client before its first byte', () => {
  const CLIENTS = [
    { version: 'v1', kind: 'without TLS', host: '127.0.0.1' },
    { version: 'v1', kind: 'with TLS', host: '::1' },
    { version: 'v2', kind: 'with TLS', host: '127.0.0.1' },
    { version: 'v2', kind: 'without TLS', host: '::1' },
  ] as const;
  for (const { version, kind, host } of CLIENTS) {
    test(`${version}, ${kind}, from ${host}`, async () => {
      using echo = startEcho();
      const port = findFreePort();
      const more = { ...certificateFor(kind), proxy_protocol: version, listen: { hostname: '::', port } };
      using _ = startRelay(echo.port, more);
      using client = open(port, kind, host);
      await waitFor(() => client.bytes > 0, 'the header');
      const { localPort = 0 } = client.socket;
      client.socket.end('hello ');
      await waitFor(() => client.has_ended, 'the end');
      const ports = Buffer.from([localPort >> 8, localPort & 255, port >> 8, port & 255]);
      const address = host === '::1' ? [...Array(15).fill(0), 1] : [127, 0, 0, 1];
      const [family, bytes] = host === '::1' ? ['TCP6', 0x21] : ['TCP4', 0x11];
      const header = {
        v1: Buffer.from(`PROXY ${family} ${host} ${host} ${localPort} ${port}\r\n`),
        v2: Buffer.concat([
          Buffer.from('\r\n\r\n\0\r\nQUIT\n'),
          Buffer.from([0x21, bytes, 0, 2 * address.length + 4, ...address, ...address]),
          ports,
        ]),
      }[version];
      expect(Buffer.concat(client.received).toString('latin1')).toBe(`${header.toString('latin1')}hello end`);
    });
  }
});
