import { beforeAll, describe, expect, test } from 'bun:test';
import type { ServerWebSocket } from 'bun';
import { openServerSocket, PassedSocket } from '../../../src/features/gateway/passed-socket.ts';
import { createTraffic } from '../../../src/features/gateway/traffic.ts';
import { SOCKET_HANDLERS, type SocketHandler } from '../../../src/platform/socket/socket-handlers.ts';
import { makeCertificate } from '../../support/network/tls.ts';
import { IMMEDIATE_MS, waitFor } from '../../support/wait.ts';

const MIB = 1024 ** 2;
const FRAMES = 100;
/** Bytes that a passed socket may keep: a frame, and what Bun reads at a time. */
const UNSENT_BYTES_MAX = 2 * MIB;
/** Bytes that the kernel may keep for both connections of one, in addition. */
const UNDER_WAY_MAX = 32 * MIB;
const TRAFFIC = { limits: { is_on: false, scale: 1 }, bytes_a_minute: { of_server: 1, of_address: 1 } };
const KINDS = ['without TLS', 'with TLS'] as const;

let key_pair: { certificate: string; key: string };
beforeAll(async () => {
  key_pair = await makeCertificate(['localhost']);
});

/** Frames of 1 MiB, each with its number. */
function* numberedFrames(): Generator<Uint8Array<ArrayBuffer>> {
  for (let number = 0; number < FRAMES; number += 1) {
    const frame = new Uint8Array(MIB);
    frame[0] = number;
    yield frame;
  }
}
const NUMBERS = Array.from({ length: FRAMES }, (_, number) => number);

/** A game server with one player. */
class Game implements Disposable {
  readonly numbers: number[] = [];
  readonly closed = Promise.withResolvers<number>();
  sent_bytes = 0;
  #socket: ServerWebSocket<undefined> | undefined;
  #left: Iterator<Uint8Array<ArrayBuffer>> | undefined;
  readonly server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request, server) => (server.upgrade(request) ? undefined : new Response('')),
    websocket: {
      open: (socket) => {
        this.#socket = socket;
      },
      message: (_, frame) => void this.numbers.push(Number(frame[0])),
      drain: () => this.#sendMore(),
      close: (_, code) => this.closed.resolve(code),
    },
  });

  get socket(): ServerWebSocket<undefined> {
    if (!this.#socket) throw new Error('no player has come');
    return this.#socket;
  }

  /** Sends all frames, as fast as they are accepted. */
  flood(): void {
    this.#left = numberedFrames();
    this.#sendMore();
  }

  [Symbol.dispose](): void {
    void this.server.stop(true);
  }

  #sendMore(): void {
    while (this.#left && this.socket.getBufferedAmount() === 0) {
      const { done, value } = this.#left.next();
      if (done) return;
      this.socket.send(value);
      this.sent_bytes += value.length;
    }
  }
}

/** Opens a player's WebSocket to a game, as the gateway passes it on. */
async function openStage({ with_tls = false, stuck_max_ms = 60_000 } = {}) {
  const game = new Game();
  const to_game = await openServerSocket({
    server_id: 'a server',
    url: `ws://127.0.0.1:${game.server.port}`,
    headers: new Headers(),
    protocols: [],
  });
  const traffics = createTraffic(TRAFFIC);
  const ended = Promise.withResolvers<{ may_come_back: boolean }>();
  const traffic = traffics.ofServer('a server').ofClient('127.0.0.1');
  const passed = new PassedSocket(to_game, { traffic, stuck_max_ms, onEnd: ended.resolve });
  let to_player: ServerWebSocket<SocketHandler> | undefined;
  const front = Bun.serve<SocketHandler>({
    hostname: '127.0.0.1',
    port: 0,
    ...(with_tls && { tls: { cert: key_pair.certificate, key: key_pair.key } }),
    fetch: (request, server) => (server.upgrade(request, { data: passed }) ? undefined : new Response('')),
    websocket: {
      ...SOCKET_HANDLERS,
      open(socket) {
        to_player = socket;
        SOCKET_HANDLERS.open?.(socket);
      },
    },
  });
  const url = `${with_tls ? 'wss' : 'ws'}://127.0.0.1:${front.port}`;
  const options = { tls: { rejectUnauthorized: false } } as unknown as string[];
  const player = new WebSocket(url, options) as unknown as Bun.WebSocket;
  player.binaryType = 'arraybuffer';
  const numbers: number[] = [];
  const closed = Promise.withResolvers<number>();
  player.addEventListener('message', ({ data }) => void numbers.push(Number(new Uint8Array(data)[0])));
  player.addEventListener('close', ({ code }) => closed.resolve(code));
  await waitFor(() => player.readyState === WebSocket.OPEN, 'the WebSocket');
  let unsent_max = 0;
  const watching = setInterval(() => {
    unsent_max = Math.max(unsent_max, to_game.bufferedAmount, to_player?.getBufferedAmount() ?? 0);
  }, 1);
  return {
    game,
    player,
    numbers,
    closed: closed.promise,
    ended: ended.promise,
    /** Returns the most bytes that were kept for a side. */
    unsentMax: () => unsent_max,
    /** Returns the bytes that have passed, once no more do. */
    async settledBytes() {
      let passed = 0;
      let same = 0;
      await waitFor(() => {
        const { sent_bytes = 0, received_bytes = 0 } = traffics.take().get('a server') ?? {};
        same = sent_bytes + received_bytes === 0 ? same + 1 : 0;
        passed += sent_bytes + received_bytes;
        return passed > 0 && same >= 20;
      }, 'the bytes to settle');
      return passed;
    },
    [Symbol.dispose]() {
      clearInterval(watching);
      player.terminate();
      game[Symbol.dispose]();
      void front.stop(true);
    },
  };
}

describe.each(KINDS)('back pressure of WebSockets %s', (kind) => {
  const with_tls = kind === 'with TLS';

  test('slows down a server whose player does not read; the player then gets every frame in order', async () => {
    using stage = await openStage({ with_tls });
    stage.player.pause();
    stage.game.flood();
    expect(await stage.settledBytes()).toBeLessThan(UNDER_WAY_MAX);
    expect(stage.game.sent_bytes).toBeLessThan(FRAMES * MIB);
    stage.player.resume();
    await waitFor(() => stage.numbers.length === FRAMES, 'all frames');
    expect(stage.numbers).toEqual(NUMBERS);
    expect(stage.unsentMax()).toBeWithin(1, UNSENT_BYTES_MAX);
  });

  test('slows down a player whose server does not read; the server then gets every frame in order', async () => {
    using stage = await openStage({ with_tls });
    stage.game.socket.pause();
    for (const frame of numberedFrames()) stage.player.send(frame);
    expect(await stage.settledBytes()).toBeLessThan(UNDER_WAY_MAX);
    expect(stage.player.bufferedAmount).toBeGreaterThan(0);
    stage.game.socket.resume();
    await waitFor(() => stage.game.numbers.length === FRAMES, 'all frames');
    expect(stage.game.numbers).toEqual(NUMBERS);
    expect(stage.unsentMax()).toBeWithin(1, UNSENT_BYTES_MAX);
  });

  test('ends for a player who reads nothing for too long, and the server gets 1001', async () => {
    using stage = await openStage({ with_tls, stuck_max_ms: 100 });
    stage.player.pause();
    stage.game.flood();
    expect(await stage.ended).toEqual({ may_come_back: true });
    expect(await stage.game.closed.promise).toBe(1001);
  });

  test('ends for a server that reads nothing for too long, and the player gets 1013', async () => {
    using stage = await openStage({ with_tls, stuck_max_ms: 100 });
    stage.game.socket.pause();
    for (const frame of numberedFrames()) stage.player.send(frame);
    expect(await stage.ended).toEqual({ may_come_back: true });
    // The player's frames are read until its own side notices.
    expect(await stage.closed).toBe(1013);
  });

  test('delays neither the end of a player nor that of a server', async () => {
    using leaving = await openStage({ with_tls });
    leaving.player.pause();
    leaving.game.flood();
    await leaving.settledBytes();
    leaving.player.terminate();
    expect(await leaving.game.closed.promise).toBe(1001);
    using crashing = await openStage({ with_tls });
    crashing.game.socket.pause();
    for (const frame of numberedFrames()) crashing.player.send(frame);
    await crashing.settledBytes();
    crashing.game.socket.terminate();
    expect(await crashing.closed).toBe(1012);
  });
});

/** A server that accepts a WebSocket, reads nothing of it, and sends frames without end. */
function openDeafServer() {
  const closed = Promise.withResolvers<void>();
  const frame = new Uint8Array(64 * 1024 + 10);
  frame.set([0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
  let left = 0;
  function flood(socket: Bun.Socket<undefined>): void {
    for (;;) {
      const rest = frame.subarray(frame.length - left);
      const written = socket.write(left > 0 ? rest : frame);
      left = (left > 0 ? left : frame.length) - Math.max(0, written);
      if (left > 0) return;
    }
  }
  let is_open = false;
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket: Bun.Socket<undefined>, bytes) {
        if (is_open) return;
        is_open = true;
        const key = /sec-websocket-key: (\S+)/i.exec(bytes.toString())?.[1] ?? '';
        const accept = new Bun.CryptoHasher('sha1')
          .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
          .digest('base64');
        const headers = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n`;
        socket.write(`HTTP/1.1 101 Switching Protocols\r\n${headers}\r\n`);
        flood(socket);
      },
      drain: flood,
      close: () => closed.resolve(),
    },
  });
  return { port: listener.port, closed: closed.promise, [Symbol.dispose]: () => listener.stop(true) };
}

test('back pressure of WebSockets: a server that sends on and never answers the close is cut', async () => {
  using server = openDeafServer();
  const url = `ws://127.0.0.1:${server.port}`;
  const to_game = await openServerSocket({ server_id: 'a server', url, headers: new Headers(), protocols: [] });
  const traffic = createTraffic(TRAFFIC).ofServer('a server').ofClient('127.0.0.1');
  const passed = new PassedSocket(to_game, { traffic, onEnd() {} });
  const began = performance.now();
  passed.close(1_006, '');
  await server.closed;
  expect(performance.now() - began).toBeLessThan(IMMEDIATE_MS);
});
