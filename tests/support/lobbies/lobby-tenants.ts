import { expect } from 'bun:test';
import { makeGame, type TestGame } from '../game.ts';
import { find, seatOf } from '../game-server.ts';
import type { TestService } from '../service.ts';
import { outcomeOf } from '../suite.ts';

/** Checks that a path of a lobby hides the lobby from another game's token, and knows no lobby of another game or of none. */
export async function expectForeignLobbiesHidden(
  { api, administrator_token }: Pick<TestService, 'api' | 'administrator_token'>,
  game: TestGame,
  pathOf: (lobby_id: string) => string,
): Promise<void> {
  const other = await makeGame(api, administrator_token);
  const { lobby_id } = await seatOf(find({ api }, game));
  const refused = async (path: string, token: string) => outcomeOf(await api.call('GET', path, { token }));
  expect(await refused(pathOf(lobby_id), other.cloud_token)).toBe('404 GAME_NOT_FOUND');
  const foreign = pathOf(lobby_id).replace(game.game_id, other.game_id).replace(game.namespace_id, other.namespace_id);
  expect(await refused(foreign, other.cloud_token)).toBe('404 MATCHMAKER_LOBBY_NOT_FOUND');
  expect(await refused(pathOf(crypto.randomUUID()), game.cloud_token)).toBe('404 MATCHMAKER_LOBBY_NOT_FOUND');
}
