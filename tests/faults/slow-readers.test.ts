import { describe, expect, test } from 'bun:test';
import { connect, type Socket } from 'node:net';
import { residentBytes } from '../../bench/meter.ts';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { makeGame, type TestGame, uploadScript } from '../support/game.ts';
import { openWebSocketPlayer, SERVERS_DOMAIN } from '../support/gateway.ts';
import { openSmallS3, type SmallS3 } from '../support/objects/small-s3.ts';
import { type Home, makeHome, type Program } from '../support/program.ts';
import { serversOf } from '../support/servers.ts';
import { showSite, uploadSite } from '../support/site.ts';
import { waitFor } from '../support/wait.ts';

/** More than Bun's default limit of concurrent fetches. */
const READERS = 300;
/** Few at once, because a busy machine cannot answer all of them in time. */
const CONCURRENT_REQUESTS = 20;
/** More than the socket buffers hold. */
const LARGE_BYTES = 24 * 1024 ** 2;
/** Transfers that one address may have at a time. */
const PER_ADDRESS_MAX = 256;
const SLOW_ADDRESS = '127.0.0.2';
const ANOTHER = '127.0.0.3';

/** A service with a site in a bucket, and clients that do not read. */
interface SlowReaders extends AsyncDisposable {
  s3: SmallS3;
  program: Program;
  game: TestGame;
  host: string;
  /** Requests the large file, reads the start of the answer and stops reading. Returns the status. */
  requestAndStop(local_address?: string): Promise<number>;
  get(path: string): Promise<Response>;
  /** Disconnects one of these clients. */
  disconnectOne(): void;
}

async function openSlowReaders(settings: Record<string, string>): Promise<SlowReaders> {
  await using opened = new AsyncDisposableStack();
  const s3 = opened.use(await openSmallS3());
  const home: Home = opened.use(await makeHome({ ...s3.settings, ...settings }, { has_prepared_database: true }));
  const program = await home.start();
  const game = await makeGame(program.api, program.administrator_token);
  const { game: seen } = await program.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
  const host = `${seen.name_id}.sites.localhost`;
  const site_id = await uploadSite(program.api, game, {
    'index.html': 'small',
    'large.bin': new Uint8Array(LARGE_BYTES),
  });
  await showSite(program.api, game, { site_id });
  const sockets: Socket[] = [];
  opened.defer(() => {
    for (const socket of sockets) socket.destroy();
  });
  const everything = opened.move();
  return {
    s3,
    program,
    game,
    host,
    disconnectOne: () => void sockets[0]?.destroy(),
    get: (path) => fetch(`${program.url}/${path}`, { headers: { host } }),
    requestAndStop(localAddress = '127.0.0.1') {
      const { hostname, port } = new URL(program.url);
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      const socket = connect({ host: hostname, port: Number(port), localAddress });
      sockets.push(socket);
      socket.on('error', reject);
      socket.once('data', (bytes: Buffer) => {
        socket.pause();
        resolve(Number(bytes.toString('latin1').split(' ')[1]));
      });
      socket.write(`GET /large.bin HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      return promise;
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

describe('clients that do not read', () => {
  test('block no sites, uploads or API requests of others, even if they are 300; each address is limited', async () => {
    await using stage = await openSlowReaders({ MUSTER_LIMITS_SCALE: '1' });
    const { s3, program, game } = stage;
    const addresses = Array.from({ length: READERS }, (_, reader) =>
      reader < PER_ADDRESS_MAX ? SLOW_ADDRESS : ANOTHER,
    );
    for (let first = 0; first < READERS; first += CONCURRENT_REQUESTS) {
      const some = addresses.slice(first, first + CONCURRENT_REQUESTS);
      const statuses = await Promise.all(some.map((address) => stage.requestAndStop(address)));
      expect(new Set(statuses)).toEqual(new Set([200]));
    }
    expect(s3.under_way).toBe(READERS);
    expect(await stage.requestAndStop(SLOW_ADDRESS)).toBe(429);
    expect(await stage.requestAndStop(ANOTHER)).toBe(200);
    const answer = await stage.get('');
    expect([answer.status, await answer.text()]).toEqual([200, 'small']);
    await uploadSite(program.api, game, { 'index.html': 'another' });
    expect((await program.api.get('/health/ready')).status).toBe(200);
  });

  test('are limited together: above the limit, requests get a 503 until one disconnects', async () => {
    await using stage = await openSlowReaders({ BUN_CONFIG_MAX_HTTP_REQUESTS: '20' });
    const { s3, program } = stage;
    for (let number = 0; number < 10; number += 1) expect(await stage.requestAndStop()).toBe(200);
    const refused = await stage.get('');
    expect([refused.status, (await refused.json()).code, refused.headers.get('retry-after')]).toEqual([
      503,
      'TRANSFERS_BUSY',
      '1',
    ]);
    expect((await program.api.get('/health/ready')).status).toBe(200);
    stage.disconnectOne();
    await waitFor(() => s3.under_way === 9, 'the request to the storage to end');
    expect((await stage.get('')).status).toBe(200);
  });
});

/** Sends 100 MiB to each player as fast as it is accepted. */
const FLOOD = `
const frame = new Uint8Array(1024 ** 2);
const sendMore = (socket) => { while (socket.data.left > 0 && socket.getBufferedAmount() === 0) { socket.send(frame); socket.data.left -= 1; } };
Bun.serve({
  port: Number(process.env.PORT_web),
  hostname: '0.0.0.0',
  fetch: (request, server) => { server.upgrade(request, { data: { left: 100 } }); },
  websocket: { open: sendMore, drain: sendMore, message() {} },
});
console.log('listening');
`;
const PLAYERS = 8;
const MEMORY_MAX = 64 * 1024 ** 2;

test.skipIf(!IS_FULL_LENGTH)(
  'players who do not read 100 MiB cost the service little memory, and get all of it later',
  async () => {
    await using home = await makeHome({ MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN });
    const program = await home.start();
    const game = await makeGame(program.api, program.administrator_token);
    const servers = serversOf(program, game);
    const ports = { web: { protocol: 'http' } };
    const body = await servers.bodyOf(await uploadScript(program.api, game, FLOOD), { network: { ports } });
    const server_id: string = (await servers.create(body)).body.server.id;
    await servers.waitForLines(server_id, 1);
    const before = residentBytes(program.pid);
    using opened = new DisposableStack();
    const players = Array.from({ length: PLAYERS }, () => {
      const player = opened.use(openWebSocketPlayer({ name: `${server_id}-web`, url: program.url }));
      (player.socket as unknown as Bun.WebSocket).pause();
      return player;
    });
    await Promise.all(players.map((player) => player.opened));
    let [most, same] = [0, 0];
    await waitFor(() => {
      const now = residentBytes(program.pid);
      same = now > most ? 0 : same + 1;
      most = Math.max(most, now);
      return same === 40;
    }, 'the memory to settle');
    expect(most - before).toBeLessThan(MEMORY_MAX);
    for (const { socket } of players) (socket as unknown as Bun.WebSocket).resume();
    for (const player of players) expect(await player.next(100)).toHaveLength(100);
  },
  300_000,
);
