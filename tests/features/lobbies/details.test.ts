import { beforeAll, describe, expect, test } from 'bun:test';
import { connectGameServer, find, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { expectForeignLobbiesHidden } from '../../support/lobbies/lobby-tenants.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const muster = shareService();
const MOMENT = expect.stringMatching(/^\d{4}-.*Z$/);

describe('lobby details', () => {
  let game: Awaited<ReturnType<typeof makeControlledGame>>;
  beforeAll(async () => {
    game = await makeControlledGame(muster, { game_modes: { default: { max_players: 4, taggable: true } } });
  });
  const pathOf = (lobby_id: string) =>
    `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/matchmaker/lobbies/${lobby_id}`;
  const read = async (lobby_id: string) =>
    (await muster.api.ok('GET', pathOf(lobby_id), { token: game.cloud_token })).lobby;

  test('details of a lobby of another game, or of an unknown one, are not found', async () => {
    await expectForeignLobbiesHidden(muster, game, pathOf);
  });

  test('have its tags, its state and a seat for each player, until it ends', async () => {
    const tags = { map: '<ice>' };
    const { lobby_id, player_token } = await seatOf(find(muster, game, { tags }));
    await seatOf(find(muster, game, { tags }));
    const server = await connectGameServer(muster, game, lobby_id);
    expect(outcomeOf(await server.connected(player_token))).toBe('200');
    expect(outcomeOf(await server.setState({ round: 3 }))).toBe('200');
    const running = await read(lobby_id);
    expect(running).toEqual({
      lobby_id,
      server_id: server.server_id,
      version_id: game.version_id,
      game_mode_id: 'default',
      create_ts: MOMENT,
      ready_ts: MOMENT,
      is_closed: false,
      code: expect.any(String),
      max_players_normal: 4,
      max_players_direct: 4,
      max_players_party: 4,
      tags,
      state: { round: 3 },
      players: [
        { player_id: expect.any(String), create_ts: MOMENT, connect_ts: MOMENT },
        { player_id: expect.any(String), create_ts: MOMENT, seat_deadline_ts: MOMENT },
      ],
    });
    await server.disconnected(player_token);
    expect((await read(lobby_id)).players).toEqual([running.players[1]]);
    const path = `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby_id}`;
    await muster.api.ok('DELETE', path, { token: game.cloud_token });
    const ended = await read(lobby_id);
    expect(ended).toMatchObject({ stop_ts: MOMENT, stop_reason: 'removed', players: [], state: { round: 3 } });
    expect(ended).not.toHaveProperty('code');
  });
});
