import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { uploadScript } from '../../support/game.ts';
import { find, makeControlledGame } from '../../support/game-server.ts';
import {
  certifyLocalhost,
  ECHO_PORTS,
  ECHO_SOURCE,
  echoBy,
  echoByTcp,
  openTlsPlayer,
  openUdpPlayer,
} from '../../support/relayed.ts';
import { openRestartableService } from '../../support/restart.ts';
import { serversOf } from '../../support/servers.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

const SHAPE = { source: ECHO_SOURCE, ports: ECHO_PORTS };
async function isListening(port: number): Promise<boolean> {
  const opening = Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } });
  return await opening.then(
    (socket) => {
      socket.end();
      return true;
    },
    () => false,
  );
}

describe('relays of a lobby', () => {
  let muster: TestService;
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  let ca: string;
  beforeAll(async () => {
    const { certificate, settings } = await certifyLocalhost();
    ca = certificate;
    muster = await openTestService(settings);
    game = await makeControlledGame(muster, SHAPE);
  }, 300_000);
  afterAll(() => muster[Symbol.asyncDispose](), 300_000);

  test('the answer of a find has a tcp_tls port that leads to the server at once; tcp and udp lead to it without relays', async () => {
    const { min, max } = muster.config.servers.server_ports;
    for (let lobbies = 0; lobbies < 3; lobbies += 1) {
      const { body } = await find(muster, game, { prevent_auto_create_lobby: false });
      const { game: relayed, plain, voice } = body.ports;
      expect(relayed).toEqual({
        hostname: 'localhost',
        host: `localhost:${relayed.port}`,
        port: relayed.port,
        is_tls: true,
      });
      const player = await openTlsPlayer(relayed, ca);
      await echoBy(player, 'hello');
      player.destroy();
      expect([plain.is_tls, voice.is_tls]).toEqual([false, false]);
      expect(await echoByTcp(plain, 'hello')).toBe('hello');
      using speaker = await openUdpPlayer(voice);
      await speaker.echo('hello');
      const numbers = [relayed.port, plain.port, voice.port];
      expect(new Set(numbers).size).toBe(3);
      for (const number of numbers) expect(number).toBeWithin(min, max + 1);
    }
  }, 300_000);

  test('the server list has the same address, and the port on which the server listens', async () => {
    const { body } = await find(muster, game);
    const path = `/games/${game.game_id}/environments/${game.namespace_id}/servers`;
    const { servers } = await muster.api.ok('GET', path, { token: game.cloud_token });
    const server = servers.find(
      ({ tags }: { tags: object }) => 'lobby_id' in tags && tags.lobby_id === body.lobby.lobby_id,
    );
    const { public_hostname, public_port, internal_port } = server.network.ports.game;
    expect({ hostname: public_hostname, port: public_port }).toMatchObject({
      hostname: 'localhost',
      port: body.ports.game.port,
    });
    expect(internal_port).not.toBe(public_port);
    expect(await echoByTcp({ hostname: 'localhost', port: internal_port }, 'direct')).toBe('direct');
  }, 300_000);

  test('a server that ends closes its connections and its relay', async () => {
    const { body } = await find(muster, game);
    const player = await openTlsPlayer(body.ports.game, ca);
    const closed = new Promise((resolve) => player.once('close', resolve));
    player.write('exit');
    await closed;
    await waitFor(
      () =>
        openTlsPlayer(body.ports.game, ca).then(
          () => false,
          ({ code }) => code === 'ECONNREFUSED',
        ),
      'the relay to be closed',
    );
  }, 300_000);
});

test('relays: without a certificate, a tcp_tls port has no TLS, and the answer says so', async () => {
  await using muster = await openTestService();
  const game = await makeControlledGame(muster, SHAPE);
  const { body } = await find(muster, game);
  expect(body.ports.game.is_tls).toBe(false);
  expect(await echoByTcp(body.ports.game, 'hello')).toBe('hello');
}, 300_000);

test('relays: with a certificate for other names only, a tcp_tls port has no TLS', async () => {
  const { settings } = await certifyLocalhost();
  await using muster = await openTestService({ ...settings, MUSTER_SERVER_HOST: '127.0.0.1' });
  const game = await makeControlledGame(muster, SHAPE);
  const { body } = await find(muster, game);
  expect(body.ports.game).toMatchObject({ hostname: '127.0.0.1', is_tls: false });
  expect(await echoByTcp(body.ports.game, 'hello')).toBe('hello');
}, 300_000);

test('relays: after a restart of the service, the same port leads to the same server', async () => {
  const { certificate, settings } = await certifyLocalhost();
  await using muster = await openRestartableService(settings);
  const game = await makeControlledGame(muster, SHAPE);
  const { body } = await find(muster, game);
  const before = await openTlsPlayer(body.ports.game, certificate);
  await echoBy(before, 'before');
  const closed = new Promise((resolve) => before.once('close', resolve));
  await muster.close();
  await closed;
  expect(await echoByTcp(body.ports.plain, 'direct')).toBe('direct');
  await muster.open();
  const after = await openTlsPlayer(body.ports.game, certificate);
  await echoBy(after, 'after');
  after.destroy();
}, 300_000);

test('relays: with MUSTER_RELAYS=all, tcp and udp ports have relays too, and ports of the host network never', async () => {
  await using muster = await openTestService({ MUSTER_RELAYS: 'all' });
  const game = await makeControlledGame(muster, SHAPE);
  const { body } = await find(muster, game);
  const { game: without_tls, plain, voice } = body.ports;
  const path = `/games/${game.game_id}/environments/${game.namespace_id}/servers`;
  const { servers } = await muster.api.ok('GET', path, { token: game.cloud_token });
  const own = servers[0].network.ports;
  expect([plain.port, voice.port]).toEqual([own.plain.public_port, own.voice.public_port]);
  expect(plain.port).not.toBe(own.plain.internal_port);
  expect(voice.port).not.toBe(own.voice.internal_port);
  expect(without_tls).toMatchObject({ port: own.game.internal_port, is_tls: false });
  for (const tcp of [plain, without_tls]) expect(await echoByTcp(tcp, 'hello')).toBe('hello');
  using speaker = await openUdpPlayer(voice);
  await speaker.echo('hello');

  const host_network = { network: { ports: { own: { protocol: 'udp', routing: { host: {} } } } } };
  const { create, bodyOf, waitForStart } = serversOf(muster, game);
  const created = await create(await bodyOf(game.build_id, host_network));
  const { network } = await waitForStart(created.body.server.id);
  expect(network.ports.own.public_port).toBe(network.ports.own.internal_port);
}, 300_000);

test('relays: the start of the service ends a game server that took the port of a relay meanwhile', async () => {
  const { certificate, settings } = await certifyLocalhost();
  await using muster = await openRestartableService({ ...settings, MUSTER_ISOLATION: 'off' });
  const game = await makeControlledGame(muster, SHAPE);
  const { ports } = (await find(muster, game)).body;
  const servers = serversOf(muster, game);
  const thief = await uploadScript(
    muster.api,
    game,
    `const socket = { data() {} };
    for (;;) {
      try { Bun.listen({ hostname: '0.0.0.0', port: Number(process.env.STOLEN), socket }); break; } catch { await Bun.sleep(5); }
    }`,
  );
  const runtime = { environment: { STOLEN: String(ports.game.port) } };
  const created = await servers.create(await servers.bodyOf(thief, { runtime }));
  const { id } = await servers.waitForStart(created.body.server.id);
  await muster.close();
  await waitFor(() => isListening(ports.game.port), 'the other server to take the port');
  await muster.open();
  const player = await openTlsPlayer(ports.game, certificate);
  await echoBy(player, 'hello');
  player.destroy();
  expect(muster.events).toContainEqual({ event: 'server_took_port', server_id: id, port: ports.game.port });
}, 300_000);
