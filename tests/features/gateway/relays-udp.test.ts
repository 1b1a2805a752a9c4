import { describe, expect, spyOn, test } from 'bun:test';
import { openUdpRelay, type UdpSilence } from '../../../src/features/gateway/relays/udp-relay.ts';
import { ServerSlots } from '../../../src/features/gateway/server-slots.ts';
import { createTraffic } from '../../../src/features/gateway/traffic.ts';
import { Slots } from '../../../src/platform/limits/slots.ts';
import { findFreePort } from '../../support/network/test-ports.ts';
import { openUdpPlayer } from '../../support/relayed.ts';
import { waitFor } from '../../support/wait.ts';

const HOST = '127.0.0.1';
const BYTES = { of_server: 1e9, of_address: 1e9 };
const traffic = createTraffic({ limits: { is_on: true, scale: 1 }, bytes_a_minute: BYTES }).ofServer('a server');
const LARGE = 'x'.repeat(1_000);
const MANY = { open_max: 1_000, open_of_address_max: 1_000, opened_per_second_max: 1_000 };

interface Packet {
  text: string;
  port: number;
  answer(text: string): void;
}

/** A game server that collects packets, and echoes them by default. */
async function startServer(onPacket: (packet: Packet) => void = ({ text, answer }) => answer(text)) {
  const packets: Packet[] = [];
  const socket = await Bun.udpSocket({
    hostname: HOST,
    port: 0,
    socket: {
      data(server, bytes, port, address) {
        const packet = {
          text: bytes.toString(),
          port,
          answer: (text: string) => void server.send(text, port, address),
        };
        packets.push(packet);
        onPacket(packet);
      },
      error() {},
    },
  });
  return { port: socket.port, packets, [Symbol.dispose]: () => socket.close() };
}

interface RelayChanges {
  limits?: Partial<typeof MANY>;
  slots?: Slots;
  silence?: UdpSilence;
  hostname?: string;
}

async function startRelay(target_port: number, changes: RelayChanges = {}) {
  const { limits, slots = new Slots(1_000), hostname = HOST, ...more } = changes;
  const port = findFreePort();
  const relay = await openUdpRelay({
    listen: { hostname, port },
    target: { hostname: HOST, port: target_port },
    slots: new ServerSlots({ ...MANY, ...limits }, slots, 'a game'),
    traffic,
    ...more,
  });
  return { hostname: HOST, port, slots, count: relay.count, [Symbol.dispose]: () => relay.close() };
}

describe('relays: a UDP relay refuses', () => {
  test('to open at a port that is taken', async () => {
    using relay = await startRelay(1);
    const of_server = new ServerSlots(MANY, relay.slots, 'a game');
    const again = openUdpRelay({
      listen: { hostname: HOST, port: relay.port },
      target: relay,
      slots: of_server,
      traffic,
    });
    await expect(again).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  const LIMITS = [
    { name: 'clients of one address over its limit', limits: { open_of_address_max: 2 } },
    { name: 'clients of a server over its limit', limits: { open_max: 2 } },
    { name: 'new clients over the limit for a second', limits: { opened_per_second_max: 2 } },
    { name: 'clients of a game that has half of the slots', slots: new Slots(4) },
  ];
  for (const { name, ...limited } of LIMITS) {
    test(name, async () => {
      using server = await startServer();
      using relay = await startRelay(server.port, limited);
      using first = await openUdpPlayer(relay);
      using second = await openUdpPlayer(relay);
      using third = await openUdpPlayer(relay);
      await first.echo('1');
      await second.echo('2');
      third.send('3');
      // Packets of one relay arrive in order.
      await second.echo('4');
      expect(server.packets.map(({ text }) => text)).not.toContain('3');
    });
  }

  test('packets for a client that has sent none, from the server or from others', async () => {
    using server = await startServer();
    using relay = await startRelay(server.port);
    using player = await openUdpPlayer(relay);
    await player.echo('hello');
    const flow_port = server.packets[0]?.port ?? 0;
    // Packets to the flow's socket would reach the player.
    using stranger = await openUdpPlayer({ hostname: HOST, port: flow_port });
    stranger.send('forged');
    await player.echo('next');
    expect(player.received).not.toContain('forged');
  });

  /** A server that echoes packets, and answers those that begin with "stream" with 200 packets more. */
  const startStream = () =>
    startServer(({ text, answer }) => {
      for (let count = 0; text.startsWith('stream') && count < 200; count += 1) answer(LARGE);
      answer(text);
    });

  test('more than three times the bytes of a client that has not gone on after answers, however many packets it sends', async () => {
    using server = await startStream();
    using relay = await startRelay(server.port);
    using player = await openUdpPlayer(relay);
    using other = await openUdpPlayer(relay);
    const count = () => player.received.length;
    player.send('stream'.padEnd(LARGE.length));
    await waitFor(() => count() === 3, 'the first answers');
    for (let sent = 0; sent < 2; sent += 1) player.send('stream'.padEnd(LARGE.length));
    await waitFor(() => count() === 9, 'the answers to the next packets');
    // The server's other packets have reached the relay before these.
    for (const text of ['1', '2', '3']) await other.echo(text);
    expect(player.received).toEqual(Array(9).fill(LARGE));
  });

  test('more than 64 times the bytes of a client that goes on after answers', async () => {
    using server = await startStream();
    using relay = await startRelay(server.port);
    using player = await openUdpPlayer(relay);
    for (const text of ['1', '2', '3', '4', '5']) await player.echo(text);
    // An echo sends its packet again until it is answered.
    const echoes = player.sent_count;
    player.send('stream');
    const max = Math.floor((64 * (echoes + 1) * 84 - echoes * 84) / (LARGE.length + 66));
    const count = () => player.received.filter((text) => text === LARGE).length;
    await waitFor(() => count() === max, 'the stream');
    using other = await openUdpPlayer(relay);
    for (const text of ['1', '2', '3']) await other.echo(text);
    expect(count()).toBe(max);
  });
});

describe('relays: a UDP relay', () => {
  test('has a flow for each client, and passes each answer to its client', async () => {
    using server = await startServer();
    using relay = await startRelay(server.port);
    using first = await openUdpPlayer(relay);
    using second = await openUdpPlayer(relay);
    await first.echo('first');
    await second.echo('second');
    await first.echo('first again');
    expect(new Set(server.packets.map(({ port }) => port)).size).toBe(2);
    expect(first.received).not.toContain('second');
    expect(second.received).not.toContain('first again');
    // A server may send at any time.
    server.packets[0]?.answer('tick');
    await waitFor(() => first.received.includes('tick'), 'the unrequested packet');
  });

  test('serves clients by IPv4 and IPv6', async () => {
    using server = await startServer();
    using relay = await startRelay(server.port, { hostname: '::' });
    using first = await openUdpPlayer(relay);
    await first.echo('by IPv4');
    using second = await openUdpPlayer({ hostname: '::1', port: relay.port });
    await second.echo('by IPv6');
  });

  test('ends the flow of a silent client, also while the server sends to it', async () => {
    using server = await startServer();
    using relay = await startRelay(server.port, { silence: { max_ms: 100, after_one_packet_max_ms: 100 } });
    using player = await openUdpPlayer(relay);
    await player.echo('hello');
    await waitFor(() => {
      server.packets[0]?.answer('tick');
      return relay.slots.taken === 0;
    }, 'the flow to end');
    await player.echo('back');
    expect(server.packets.at(-1)?.port).not.toBe(server.packets[0]?.port);
  });

  test('ends the flow of a client that has sent one packet sooner than that of one that goes on', async () => {
    using server = await startServer();
    using relay = await startRelay(server.port, { silence: { max_ms: 60_000, after_one_packet_max_ms: 500 } });
    using goes_on = await openUdpPlayer(relay);
    await goes_on.echo('1');
    await goes_on.echo('2');
    using came_once = await openUdpPlayer(relay);
    // An echo that is late would be asked for by a second packet.
    came_once.send('hello');
    await waitFor(() => came_once.received.includes('hello'), 'the answer to the only packet');
    expect(relay.slots.taken).toBe(2);
    await waitFor(() => relay.slots.taken === 1, 'the flow to end');
    await goes_on.echo('3');
    expect(new Set(server.packets.map(({ port }) => port)).size).toBe(2);
  });

  test('forgets the flow of a client if it cannot open a socket to the server', async () => {
    const NO_PORT = 70_000;
    const slots = new Slots(1_000);
    const take = spyOn(slots, 'take');
    using relay = await startRelay(NO_PORT, { slots });
    using player = await openUdpPlayer(relay);
    await waitFor(() => {
      player.send('hello');
      return take.mock.calls.length > 0;
    }, 'a flow to begin');
    expect([relay.count(), slots.taken]).toEqual([0, 0]);
  });

  test('continues when its server starts later, and when a client has gone', async () => {
    const port = findFreePort();
    using relay = await startRelay(port);
    using player = await openUdpPlayer(relay);
    for (let count = 0; count < 10; count += 1) player.send('too early');
    await Bun.sleep(0);
    const server = await Bun.udpSocket({
      hostname: HOST,
      port,
      socket: { data: (socket, bytes, from, address) => void socket.send(bytes, from, address), error() {} },
    });
    await player.echo('now');
    const other = await openUdpPlayer(relay);
    await other.echo('short');
    other.send('gone');
    other[Symbol.dispose]();
    await player.echo('still here');
    server.close();
  });
});
