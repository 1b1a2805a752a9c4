import { beforeAll, describe, expect, test } from 'bun:test';
import type { TestGame } from '../support/game.ts';
import { connectGameServer, find, type GameServer, makeControlledGame, seatOf } from '../support/game-server.ts';
import { outcomeOf, shareService } from '../support/suite.ts';
import { EMPTY, expectShape } from './exact-shapes.ts';

const muster = shareService();

describe('the lobby server reports PlayerConnected with a player_token to the service', () => {
  let game: TestGame;
  let game_server: GameServer;
  beforeAll(async () => {
    game = await makeControlledGame(muster);
    game_server = await connectGameServer(muster, game, (await seatOf(find(muster, game))).lobby_id);
  });

  const countPlayers = async (): Promise<number> => {
    const { lobbies } = await muster.api.ok('GET', '/matchmaker/lobbies/list', { token: game.public_token });
    return lobbies[0].total_player_count;
  };

  test('the answer is an empty body; from then on the player counts as connected', async () => {
    const { player_token } = await seatOf(find(muster, game));
    const before = await countPlayers();
    const { status, body } = await game_server.connected(player_token);
    expect(status).toBe(200);
    expectShape(body, EMPTY);
    expect(await countPlayers()).toBe(before + 1);
    expectShape((await game_server.disconnected(player_token)).body, EMPTY);
    expect(await countPlayers()).toBe(before);
  });

  test.each([
    ['no player_token', {}],
    ['a player_token that is no string', { player_token: 7 }],
  ])('a body with %s is refused', async (_, body) => {
    const answer = await muster.api.post('/matchmaker/players/connected', game_server.token, body);
    expect(outcomeOf(answer)).toBe('400 API_BAD_BODY');
  });

  test('the player of another lobby is refused, and so is a player who already connected', async () => {
    const elsewhere = await makeControlledGame(muster);
    const other = await seatOf(find(muster, elsewhere));
    expect(outcomeOf(await game_server.connected(other.player_token))).toBe('400 MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY');
    const { player_token } = await seatOf(find(muster, game));
    expect(outcomeOf(await game_server.connected(player_token))).toBe('200');
    expect(outcomeOf(await game_server.connected(player_token))).toBe('400 MATCHMAKER_PLAYER_ALREADY_CONNECTED');
  });
});
