import { beforeAll, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../../support/game.ts';
import { serversOf, uploadShell } from '../../support/servers.ts';
import { shareService } from '../../support/suite.ts';

const muster = shareService();
let game: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
});

test('internal_port: every answer and the environment have the port on which the program must listen, and its log says so', async () => {
  const servers = serversOf(muster, game);
  const build = await uploadShell(muster.api, game, 'echo $PORT_game_1; exec sleep 600');
  const ports = { 'game-1': { protocol: 'tcp', internal_port: 8_080 } };
  const made = await servers.create(await servers.bodyOf(build, { network: { ports } }));
  // Nothing listens on 8080, now or later.
  expect(made.body.server.network.ports).toEqual({ 'game-1': { protocol: 'tcp', routing: { game_guard: {} } } });

  const { id, network } = await servers.waitForStart(made.body.server.id);
  const { internal_port, public_port } = network.ports['game-1'];
  expect(internal_port).toBe(public_port);
  expect(internal_port).not.toBe(8_080);
  expect(await servers.waitForLines(id, 1)).toEqual([String(internal_port)]);
  expect(await servers.waitForLines(id, 1, 'std_err')).toEqual([
    `[muster] port "game-1": listen on ${internal_port}, the value of PORT_game_1, not on 8080, because all servers of a machine share its ports`,
  ]);
});

test('internal_port: a server without a requested one has the real port, and nothing in its log', async () => {
  const servers = serversOf(muster, game);
  const id = await servers.run('echo $PORT_game; echo done >&2; exec sleep 600', {
    network: { ports: { game: { protocol: 'udp' } } },
  });
  const { network } = await servers.waitForStart(id);
  expect(await servers.waitForLines(id, 1)).toEqual([String(network.ports.game.internal_port)]);
  expect(await servers.waitForLines(id, 1, 'std_err')).toEqual(['done']);
});
