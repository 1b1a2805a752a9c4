import { beforeAll, describe, expect, test } from 'bun:test';
import { connect } from 'node:net';
import { makeGame, type TestGame } from '../../support/game.ts';
import { openWebSocketPlayer, SERVERS_DOMAIN, startWebServer } from '../../support/gateway.ts';
import { sendRaw } from '../../support/network/raw-http.ts';
import { findProcessesOf } from '../../support/processes.ts';
import { openRestartableService } from '../../support/restart.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const FRAMES = 100;
const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
const VERSION = 'Sec-WebSocket-Version: 13';

const muster = shareService({ MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN });
let game: TestGame;
let web: Awaited<ReturnType<typeof startWebServer>>;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  web = await startWebServer(muster, game);
}, 300_000);

const open = (options: Parameters<typeof openWebSocketPlayer>[0] = {}) =>
  openWebSocketPlayer({ name: web.name, url: muster.config.local_url, ...options });

describe('gateway: a WebSocket', () => {
  test('is refused for a name without a server, and a path that the server refuses', async () => {
    using unknown = open({ name: 'no-name' });
    expect(await unknown.opened).toBe(false);
    using refused = open({ path: '/no-socket' });
    expect(await refused.opened).toBe(false);
  });

  describe('with a wrong handshake is refused, and the answer says what is wrong:', () => {
    const CASES: [string, string, string[], string][] = [
      ['no key', 'GET', [VERSION], '400 API_BAD_SOCKET_HANDSHAKE'],
      ['a short key', 'GET', [VERSION, 'Sec-WebSocket-Key: c2hvcnQ='], '400 API_BAD_SOCKET_HANDSHAKE'],
      ['two keys', 'GET', [VERSION, KEY, KEY], '400 API_BAD_SOCKET_HANDSHAKE'],
      ['a POST', 'POST', [VERSION, KEY], '400 API_BAD_SOCKET_HANDSHAKE'],
      ['no version', 'GET', [KEY], '426 API_SOCKET_VERSION_NOT_SUPPORTED'],
      ['another version', 'GET', [KEY, 'Sec-WebSocket-Version: 8'], '426 API_SOCKET_VERSION_NOT_SUPPORTED'],
      ['no protocol', 'GET', [KEY, VERSION, 'Sec-WebSocket-Protocol: a b'], '400 API_BAD_SOCKET_HANDSHAKE'],
    ];
    const ask = (method: string, lines: string[]) => {
      const head = [`${method} /socket HTTP/1.1`, `Host: ${web.name}.${SERVERS_DOMAIN}`, 'Connection: Upgrade, close'];
      return sendRaw(muster.config.local_url, `${[...head, 'Upgrade: websocket', ...lines].join('\r\n')}\r\n\r\n`);
    };

    test.each(CASES)('%s', async (_, method, lines, outcome) => {
      const { status, body, headers } = await ask(method, lines);
      expect(`${status} ${body.code}`).toBe(outcome);
      expect(headers.get('sec-websocket-version')).toBe(status === 426 ? '13' : null);
      expect(headers.get('upgrade')).toBe(status === 426 ? 'websocket' : null);
    });

    test('also on a page for browsers', async () => {
      const { status, body, headers } = await ask('GET', [KEY, 'Accept: text/html']);
      expect([status, headers.get('sec-websocket-version')]).toEqual([426, '13']);
      expect(body).toContain('API_SOCKET_VERSION_NOT_SUPPORTED');
    });
  });

  test('carries text and bytes both ways, and tells the server the address of the client', async () => {
    using player = open();
    await player.next(1);
    player.socket.send('Grüße 🎲');
    player.socket.send(new Uint8Array([1, 0, 255]));
    player.socket.send('');
    const [hello, text, bytes, empty] = await player.next(4);
    expect([hello, text, empty]).toEqual(['hello 127.0.0.1', 'Grüße 🎲', '']);
    expect(new Uint8Array(bytes as ArrayBuffer)).toEqual(new Uint8Array([1, 0, 255]));
  });

  test('has the subprotocol that the server chose', async () => {
    using player = open({ protocols: ['game.v1', 'game.v2'] });
    expect(await player.opened).toBe(true);
    expect(player.socket.protocol).toBe('game.v2');
  });

  test('may repeat a subprotocol, and leave parts of their list empty', async () => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const { hostname, port } = new URL(muster.config.local_url);
    const socket = connect(Number(port), hostname);
    socket.once('data', (bytes) => resolve(bytes.toString()));
    socket.on('error', reject);
    const head = [`Host: ${web.name}.${SERVERS_DOMAIN}`, 'Connection: Upgrade', 'Upgrade: websocket', KEY, VERSION];
    const lines = ['GET /socket HTTP/1.1', ...head, 'Sec-WebSocket-Protocol: game.v2, , game.v2,'];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    expect(await promise).toMatch(/^HTTP\/1.1 101 .*sec-websocket-protocol: game.v2\r\n/is);
    socket.destroy();
  });

  test('carries large frames, and many in order', async () => {
    using player = open();
    const large = new Uint8Array(1024 ** 2).fill(9);
    await player.next(1);
    player.socket.send('large');
    player.socket.send(large);
    for (let number = 0; number < 1_000; number += 1) player.socket.send(String(number));
    const [, from_server, echoed, ...numbers] = await player.next(1_003);
    expect((from_server as ArrayBuffer).byteLength).toBe(4 * 1024 ** 2);
    expect(Bun.hash(echoed as ArrayBuffer)).toBe(Bun.hash(large));
    expect(numbers).toEqual(Array.from({ length: 1_000 }, (_, number) => String(number)));
  });

  test('closes with the code that either side sends', async () => {
    using by_server = open();
    await by_server.next(1);
    by_server.socket.send('close');
    expect(await by_server.closed).toEqual({ code: 4001, reason: 'as you wish' });
    using by_client = open();
    await by_client.next(1);
    by_client.socket.close(3001, 'I leave');
    expect(await by_client.closed).toEqual({ code: 3001, reason: 'I leave' });
  });

  test('is closed with 1012 when its server is gone', async () => {
    const ending = await startWebServer(muster, game);
    using player = open({ name: ending.name });
    await player.next(1);
    player.socket.send('exit');
    expect(await player.closed).toEqual({ code: 1012, reason: 'the game server has gone' });
  }, 300_000);

  test('of a server that does not read slows its player down, and goes on when the server reads again', async () => {
    const frozen = await startWebServer(muster, game);
    using player = open({ name: frozen.name });
    await player.next(1);
    const pids = findProcessesOf(frozen.server_id);
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    const frame = new Uint8Array(1024 ** 2);
    for (let number = 0; number < FRAMES; number += 1) player.socket.send(frame);
    // What is left after the kernel's buffers and the gateway's are full.
    let [left, same] = [0, 0];
    await waitFor(() => {
      same = player.socket.bufferedAmount === left ? same + 1 : 0;
      left = player.socket.bufferedAmount;
      return same === 20;
    }, 'the frames to wait');
    expect(left).toBeGreaterThan((FRAMES / 2) * frame.length);
    for (const pid of pids) process.kill(pid, 'SIGCONT');
    expect(await player.next(1 + FRAMES)).toHaveLength(1 + FRAMES);
  }, 300_000);
});

test('gateway: when the service stops, WebSockets close with 1012, and the next start leads to the same server', async () => {
  await using restarted = await openRestartableService({ MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN });
  const its_game = await makeGame(restarted.api, restarted.administrator_token);
  const { name } = await startWebServer(restarted, its_game);
  const url = restarted.config.local_url;
  using player = open({ name, url });
  await player.next(1);
  await restarted.close();
  expect(await player.closed).toEqual({ code: 1012, reason: 'the service restarts' });
  await restarted.open();
  using again = open({ name, url });
  expect(await again.next(1)).toEqual(['hello 127.0.0.1']);
}, 300_000);
