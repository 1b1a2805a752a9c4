import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Api } from '../../support/api.ts';
import { IS_FULL_LENGTH } from '../../support/full-length.ts';
import type { TestGame } from '../../support/game.ts';
import { makeRoomGame, READY_SOURCE } from '../../support/lobbies/room.ts';
import { openTestService, type TestService } from '../../support/service.ts';

const LOBBY_MAX = 10;
const PLAYERS = 200;
const ROUNDS = IS_FULL_LENGTH ? 20 : 5;

describe('seats: many concurrent players', () => {
  let muster: TestService;
  beforeAll(async () => {
    // A busy machine takes long to start twenty servers.
    muster = await openTestService({ MUSTER_REQUEST_TIMEOUT_MS: '120000' });
  });
  afterAll(async () => {
    await muster[Symbol.asyncDispose]();
  });

  test(`${PLAYERS} concurrent finds, ${ROUNDS} times: never more than ${LOBBY_MAX} in a lobby, and every find gets a seat`, async () => {
    const { api } = muster;
    const tokens = new Set<string>();
    for (let round = 0; round < ROUNDS; round += 1) {
      const game = await makeRoomGame(muster, { source: READY_SOURCE, max_players: LOBBY_MAX });
      const finds = Array.from({ length: PLAYERS }, () =>
        api.ok('POST', '/matchmaker/lobbies/find', { token: game.public_token, body: { game_modes: ['default'] } }),
      );
      const answers = await Promise.all(finds);
      const lobbies = Map.groupBy(answers, ({ lobby }) => lobby.lobby_id);
      expect([...lobbies.values()].map((seated) => seated.length)).toEqual(Array(PLAYERS / LOBBY_MAX).fill(LOBBY_MAX));
      for (const { player } of answers) tokens.add(player.token);
      await endServers(api, game);
    }
    expect(tokens.size).toBe(PLAYERS * ROUNDS);
  }, 300_000);
});

async function endServers(api: Api, { game_id, namespace_id, cloud_token }: TestGame): Promise<void> {
  const path = `/games/${game_id}/environments/${namespace_id}/servers`;
  const { servers } = await api.ok('GET', path, { token: cloud_token });
  const end = (server: { id: string }) =>
    api.ok('DELETE', `${path}/${server.id}?override_kill_timeout=0`, { token: cloud_token });
  await Promise.all(servers.map(end));
}
