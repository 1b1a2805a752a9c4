import { expect, test } from 'bun:test';
import { find, makeControlledGame } from '../support/game-server.ts';
import { makeHome } from '../support/program.ts';
import { certifyLocalhost, ECHO_PORTS, ECHO_SOURCE, echoBy, openTlsPlayer, openUdpPlayer } from '../support/relayed.ts';

test('the service is killed: direct UDP continues, and clients of relays can connect again at the same port', async () => {
  const { certificate, settings } = await certifyLocalhost();
  await using home = await makeHome(settings, { has_prepared_database: true });
  const program = await home.start();
  const game = await makeControlledGame(program, { source: ECHO_SOURCE, ports: ECHO_PORTS });
  const { ports } = (await find(program, game)).body;
  using speaker = await openUdpPlayer(ports.voice);
  await speaker.echo('before');
  const player = await openTlsPlayer(ports.game, certificate);
  await echoBy(player, 'before');
  const closed = new Promise((resolve) => player.once('close', resolve));

  expect(await program.stop('SIGKILL')).toBe(null);
  await closed;
  await speaker.echo('while it is dead');

  const next = await home.start();
  const again = await openTlsPlayer(ports.game, certificate);
  await echoBy(again, 'after');
  await speaker.echo('after');
  again.destroy();
  await next.stop('SIGINT');
}, 300_000);
