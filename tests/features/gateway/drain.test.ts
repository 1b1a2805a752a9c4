import { describe, expect, test } from 'bun:test';
import { makeGame, uploadScript } from '../../support/game.ts';
import { openWebSocketPlayer, SERVERS_DOMAIN, startWebServer } from '../../support/gateway.ts';
import { openRestartableService } from '../../support/restart.ts';
import { waitFor } from '../../support/wait.ts';

const isReady = (url: string) =>
  fetch(`${url}/health/ready`).then(
    ({ ok }) => ok,
    () => false,
  );

/** A server that accepts the WebSocket at /late when another one is closed. */
const LATE_SERVER = `
  const closed = Promise.withResolvers();
  Bun.serve({
    port: process.env.PORT_web,
    async fetch(request, server) {
      if (request.url.endsWith('/late')) {
        console.log('asked');
        await closed.promise;
      }
      server.upgrade(request);
    },
    websocket: { open: (socket) => void socket.send('hello'), message() {}, close: () => closed.resolve() },
  });
  console.log('listening');
`;

async function openWithPlayer(drain_ms: number) {
  const settings = { MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN, MUSTER_GATEWAY_DRAIN_MS: String(drain_ms) };
  const muster = await openRestartableService(settings);
  const game = await makeGame(muster.api, muster.administrator_token);
  const { name } = await startWebServer(muster, game);
  const url = muster.config.local_url;
  const player = openWebSocketPlayer({ name, url });
  await player.next(1);
  return { muster, url, name, player };
}

describe('gateway: a stop', () => {
  test('waits for players to leave, serves them and others meanwhile, and says that it is not ready', async () => {
    const { muster, url, name, player } = await openWithPlayer(3_600_000);
    await using _ = muster;
    const closed = muster.close();
    await waitFor(async () => !(await isReady(url)), 'the service not to be ready');
    player.socket.send('still here');
    expect((await player.next(2)).at(-1)).toBe('still here');
    using second = openWebSocketPlayer({ name, url });
    await second.next(1);
    expect((await muster.api.get('/health/live')).status).toBe(200);
    const { body } = await muster.api.get('/health/ready');
    // The service still has the data directory, so it cannot be started again yet.
    expect(body.message).toContain('the service is stopping');
    expect(body.metadata.reasons[0].advice).toStartWith('Wait until it has stopped');
    for (const { socket } of [player, second]) socket.close();
    await closed;
    expect(muster.events.filter(({ event }) => event === 'gateway_drained')).toEqual([
      { event: 'gateway_drained', connections: 0 },
    ]);
  }, 300_000);

  test('closes the WebSockets of players who do not leave in time', async () => {
    const { muster, player } = await openWithPlayer(100);
    await using _ = muster;
    await muster.close();
    expect(await player.closed).toEqual({ code: 1012, reason: 'the service restarts' });
  }, 300_000);

  test('refuses a WebSocket that the server accepts only when the others have been closed', async () => {
    await using muster = await openRestartableService({
      MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN,
      MUSTER_GATEWAY_DRAIN_MS: '0',
    });
    const game = await makeGame(muster.api, muster.administrator_token);
    const build = await uploadScript(muster.api, game, LATE_SERVER);
    const { name, lines } = await startWebServer(muster, game, { build });
    const url = muster.config.local_url;
    using player = openWebSocketPlayer({ name, url });
    await player.next(1);
    using late = openWebSocketPlayer({ name, url, path: '/late' });
    await lines(2);
    await muster.close();
    expect((await player.closed).code).toBe(1012);
    expect(await late.opened).toBe(false);
  }, 300_000);

  test('lets a request in progress end', async () => {
    const { muster, url, name, player } = await openWithPlayer(0);
    await using _ = muster;
    const { hostname, port } = new URL(url);
    let text = '';
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data(__, bytes) {
          text += bytes.toString();
        },
      },
    });
    socket.write(`POST /echo HTTP/1.1\r\nHost: ${name}.${SERVERS_DOMAIN}\r\nContent-Length: 10\r\n\r\nfirst`);
    // The request has arrived once a later one is answered.
    await isReady(url);
    const closed = muster.close();
    expect((await player.closed).code).toBe(1012);
    socket.write(' half');
    await waitFor(() => text.endsWith('first half'), 'the answer');
    socket.end();
    await closed;
  }, 300_000);
});
