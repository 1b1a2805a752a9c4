import { beforeAll, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../support/game.ts';
import { serversOf } from '../support/servers.ts';
import { shareService } from '../support/suite.ts';
import { openSocket } from '../support/watch/socket.ts';

const muster = shareService();
let game: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
});

const atIpv6 = () => `http://[::1]:${muster.config.port}`;

test('listening: a request to [::1] is answered and counted like any other', async () => {
  const answer = await fetch(`${atIpv6()}/matchmaker/regions`, {
    headers: { authorization: `Bearer ${game.public_token}` },
  });
  expect(await answer.json()).toMatchObject({ regions: [expect.anything()] });
  expect(answer.headers.get('ratelimit-limit') ?? answer.headers.get('ratelimit')).not.toBeNull();
});

test('listening: sockets on both addresses receive the same messages', async () => {
  const servers = serversOf(muster, game);
  const server_id = await servers.run('exec sleep 600');
  await servers.waitForStart(server_id);
  const bases = [muster.config.public_url, atIpv6()];
  const watching = await Promise.all(
    bases.map(async (url) => {
      const socket = openSocket(url, { token: game.cloud_token });
      const key = await socket.subscribe('one', `${servers.path}/${server_id}`);
      expect((await socket.body(key)).server.destroyed_at).toBeUndefined();
      return { socket, key };
    }),
  );
  await servers.destroy(server_id, '?override_kill_timeout=0');
  for (const { socket, key } of watching) {
    expect((await socket.body(key)).server.destroyed_at).toBeNumber();
    socket[Symbol.dispose]();
  }
});
