import { expect, test } from 'bun:test';
import { find, makeControlledGame } from '../../support/game-server.ts';
import { shareService } from '../../support/suite.ts';

const muster = shareService();

test('ports without a gateway: http and https are two plain ports with numbers of their own', async () => {
  const ports = {
    game: { port: 80, protocol: 'http', proxy: 'game_guard' },
    web: { port: 443, protocol: 'https' },
    raw: { port: 7_777, protocol: 'tcp_tls' },
  };
  const game = await makeControlledGame(muster, { ports });
  const { body } = await find(muster, game);
  const answered = Object.values<{ port: number; is_tls: boolean }>(body.ports);
  expect(Object.keys(body.ports).toSorted()).toEqual(['game', 'raw', 'web']);
  expect(answered.map(({ is_tls }) => is_tls)).toEqual([false, false, false]);
  expect(new Set(answered.map(({ port }) => port)).size).toBe(3);
  // There is no gateway, so the process itself must serve what the version calls https.
  expect((await fetch(`http://127.0.0.1:${body.ports.game.port}/`)).status).toBe(200);
});
