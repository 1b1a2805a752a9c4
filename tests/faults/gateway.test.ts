import { expect, test } from 'bun:test';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { makeGame, type TestGame } from '../support/game.ts';
import { find, makeControlledGame } from '../support/game-server.ts';
import { openWebSocketPlayer, SERVERS_DOMAIN, startWebServer, WEB_SERVER } from '../support/gateway.ts';
import { makeHome, type Program } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

const SHAPE = {
  source: WEB_SERVER,
  ports: { web: { port: 80, protocol: 'http', presence: 'gateway' } },
  game_modes: { default: { max_players: 3 } },
};

async function enter(program: Program, game: TestGame) {
  const { body } = await find(program, game);
  const name: string = body.ports.web.hostname.replace(`.${SERVERS_DOMAIN}`, '');
  const path = `/socket?player_token=${body.player.token}`;
  // Like a client, again after a refusal: a service that has just started may not know its servers yet.
  const connect = ({ url }: Program) =>
    waitFor(async () => {
      const player = openWebSocketPlayer({ name, url, path });
      return (await player.opened) && player;
    }, 'a connection');
  const player = await connect(program);
  await player.next(1);
  return { player, connect, lobby_id: body.lobby.lobby_id as string };
}

test('the service is killed: players at a port with presence connect again with their tokens, and the others lose their seats', async () => {
  await using home = await makeHome({ MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN }, { has_prepared_database: true });
  const program = await home.start();
  const game = await makeControlledGame(program, SHAPE);
  const [one, other, gone] = [await enter(program, game), await enter(program, game), await enter(program, game)];
  const { lobby_id } = one;
  expect([other.lobby_id, gone.lobby_id]).toEqual([lobby_id, lobby_id]);

  expect(await program.stop('SIGKILL')).toBe(null);
  for (const { player } of [one, other, gone]) expect((await player.closed).code).toBe(1006);

  const next = await home.start();
  const countConnected = async () => {
    const { lobbies } = await next.api.ok('GET', '/matchmaker/lobbies/list', { token: game.public_token });
    return lobbies.find((lobby: { lobby_id: string }) => lobby.lobby_id === lobby_id)?.total_player_count;
  };
  const [one_back, other_back] = await Promise.all([one.connect(next), other.connect(next)]);
  for (const player of [one_back, other_back]) {
    await player.next(1);
    player.socket.send('still here');
    expect((await player.next(2)).at(-1)).toBe('still here');
  }
  await waitFor(async () => (await countConnected()) === 2, 'the third player to be counted no longer');
  const joinSame = async () => {
    const { status, body } = await find(next, game, { prevent_auto_create_lobby: true });
    return status === 200 && body.lobby.lobby_id === lobby_id;
  };
  // The third seat is kept for 30 s.
  if (IS_FULL_LENGTH) await waitFor(joinSame, 'the seat of the third player');
  other_back.socket.close();
  await waitFor(async () => (await countConnected()) === 1, 'the seat of the player who leaves to be free');
  expect(await joinSame()).toBe(true);
  one_back.socket.close();
  await next.stop('SIGINT');
}, 300_000);

test('a proxy of the environment gets no requests for game servers', async () => {
  const settings = { MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN, MUSTER_DEMO: 'off', HTTP_PROXY: 'http://127.0.0.1:1' };
  await using home = await makeHome({ ...settings, http_proxy: settings.HTTP_PROXY }, { has_prepared_database: true });
  const program = await home.start();
  const game = await makeGame(program.api, program.administrator_token);
  const { name } = await startWebServer(program, game);
  const answer = await fetch(`${program.url}/headers`, { headers: { host: `${name}.${SERVERS_DOMAIN}` } });
  expect(answer.status).toBe(200);
}, 300_000);
