import { expect, test } from 'bun:test';
import { connect } from 'node:net';
import { openServerSocket, PassedSocket } from '../../../src/features/gateway/passed-socket.ts';
import { createTraffic } from '../../../src/features/gateway/traffic.ts';
import { SOCKET_HANDLERS, type SocketHandler } from '../../../src/platform/socket/socket-handlers.ts';

const TRAFFIC = { limits: { is_on: false, scale: 1 }, bytes_a_minute: { of_server: 1, of_address: 1 } };
/** A close frame without a code (RFC 6455, 5.5.1): of a server, and of a client, whose frames have a mask. */
const BARE_CLOSE = { of_server: Buffer.from([0x88, 0]), of_client: Buffer.from([0x88, 0x80, 1, 2, 3, 4]) };

/** Opens a port where a client reaches the game server at `url`, as through the gateway. */
async function openGateway(url: string) {
  const to_game = await openServerSocket({ server_id: 'a server', url, headers: new Headers(), protocols: [] });
  const traffic = createTraffic(TRAFFIC).ofServer('a server').ofClient('127.0.0.1');
  const ended = Promise.withResolvers<{ may_come_back: boolean }>();
  const gateway = new PassedSocket(to_game, { traffic, onEnd: ended.resolve });
  const front = Bun.serve<SocketHandler>({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request, server) => (server.upgrade(request, { data: gateway }) ? undefined : new Response('')),
    websocket: SOCKET_HANDLERS,
  });
  return { port: front.port ?? 0, ended: ended.promise, [Symbol.dispose]: () => void front.stop(true) };
}

test('gateway: a player who closes without a code has left in order for the server', async () => {
  const closed = Promise.withResolvers<{ code: number; reason: string }>();
  const game = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request, server) => (server.upgrade(request) ? undefined : new Response('')),
    websocket: { message() {}, close: (_, code, reason) => closed.resolve({ code, reason }) },
  });
  using gateway = await openGateway(`ws://127.0.0.1:${game.port}`);
  const player = connect(gateway.port, '127.0.0.1');
  const head = ['GET / HTTP/1.1', 'Host: here', 'Connection: Upgrade', 'Upgrade: websocket'];
  const keys = ['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='];
  player.write(`${[...head, ...keys].join('\r\n')}\r\n\r\n`);
  player.once('data', () => player.write(BARE_CLOSE.of_client));
  expect(await closed.promise).toEqual({ code: 1_000, reason: '' });
  expect(await gateway.ended).toEqual({ may_come_back: false });
  player.destroy();
  void game.stop(true);
});

test('gateway: a server that closes without a code has not gone for the player', async () => {
  const game = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, bytes) {
        const [, key] = /sec-websocket-key: (\S+)/i.exec(bytes.toString('latin1')) ?? [];
        // The answer to the close frame.
        if (key === undefined) return;
        const accept = new Bun.CryptoHasher('sha1')
          .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
          .digest('base64');
        const headers = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n`;
        socket.write(`HTTP/1.1 101 Switching Protocols\r\n${headers}\r\n`);
        socket.write(BARE_CLOSE.of_server);
      },
    },
  });
  using gateway = await openGateway(`ws://127.0.0.1:${game.port}`);
  const player = new WebSocket(`ws://127.0.0.1:${gateway.port}`);
  const { code, reason } = await new Promise<CloseEvent>((resolve) => player.addEventListener('close', resolve));
  expect({ code, reason }).toEqual({ code: 1_000, reason: '' });
  game.stop(true);
});
