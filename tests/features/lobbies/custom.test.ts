import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { TestGame } from '../../support/game.ts';
import { makeRoomGame, READY_SOURCE } from '../../support/lobbies/room.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

const ACTIONS = { create: { enabled: true, enable_public: true, enable_private: true } };

let opened: TestService;
let game: TestGame;
beforeAll(async () => {
  opened = await openTestService();
  const source = `console.log(process.env.SERVICE_LOBBY_CONFIG ?? 'none');${READY_SOURCE}`;
  const mode = { actions: ACTIONS, taggable: true, allow_dynamic_max_players: true, max_players: 4 };
  game = await makeRoomGame(opened, { source, mode });
});
afterAll(() => opened[Symbol.asyncDispose]());

const create = (body: object) =>
  opened.api.post('/matchmaker/lobbies/create', game.public_token, { game_mode: 'default', ...body });
const find = (body: object = {}) =>
  opened.api.post('/matchmaker/lobbies/find', game.public_token, {
    game_modes: ['default'],
    prevent_auto_create_lobby: true,
    ...body,
  });
const list = async () => (await opened.api.ok('GET', '/matchmaker/lobbies/list', { token: game.public_token })).lobbies;
const remove = (lobby_id: string) =>
  opened.api.ok('DELETE', `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby_id}`, { token: game.cloud_token });

describe('create is refused:', () => {
  const CASES: [object, number, string][] = [
    [{ game_mode: 'nothing' }, 404, 'MATCHMAKER_GAME_MODE_NOT_FOUND'],
    [{ region: 'nowhere' }, 404, 'MATCHMAKER_REGION_NOT_FOUND'],
    [{ max_players: 0 }, 400, 'MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID'],
    [{ max_players: 5 }, 400, 'MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID'],
    [{ tags: { x: 'y'.repeat(513) } }, 400, 'MATCHMAKER_TAG_TOO_LONG'],
    [{ lobby_config: 'x'.repeat(16_384) }, 400, 'MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID'],
    [{ publicity: 'secret' }, 400, 'API_BAD_BODY'],
  ];
  for (const [body, status, code] of CASES) {
    test(`${JSON.stringify(body).slice(0, 60)}: ${code}`, async () => {
      const answer = await create(body);
      expect({ status: answer.status, code: answer.body.code }).toEqual({ status, code });
      expect(await list()).toEqual([]);
    });
  }

  test('for a game mode that does not allow players to create, or not this kind of lobby', async () => {
    const plain = await makeRoomGame(opened, { source: READY_SOURCE });
    const without = await opened.api.post('/matchmaker/lobbies/create', plain.public_token, { game_mode: 'default' });
    expect(without.body.code).toBe('MATCHMAKER_CUSTOM_LOBBIES_DISABLED');
    const off = { actions: { create: { enabled: false, enable_public: true } } };
    const switched_off = await makeRoomGame(opened, { source: READY_SOURCE, mode: off });
    const refused = await opened.api.post('/matchmaker/lobbies/create', switched_off.public_token, {
      game_mode: 'default',
    });
    expect(refused.body.code).toBe('MATCHMAKER_CUSTOM_LOBBIES_DISABLED');
    const mode = { actions: { create: { enabled: true } } };
    const restricted = await makeRoomGame(opened, { source: READY_SOURCE, mode });
    const body = { game_mode: 'default', publicity: 'public' };
    const answer = await opened.api.post('/matchmaker/lobbies/create', restricted.public_token, body);
    expect(answer.body.code).toBe('MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID');
  });
});

describe('a custom lobby', () => {
  test('a public one is listed and found, and its server gets the configuration', async () => {
    const { status, body } = await create({ lobby_config: { map: 'desert' }, tags: { mood: 'calm' }, max_players: 2 });
    expect(status).toBe(200);
    const { lobby_id } = body.lobby;
    expect(await list()).toMatchObject([{ lobby_id, max_players_normal: 2, max_players_direct: 2 }]);
    expect((await find({ tags: { mood: 'wild' } })).body.code).toBe('MATCHMAKER_NO_AVAILABLE_LOBBIES');
    expect((await find({ tags: { mood: 'calm' } })).body.lobby.lobby_id).toBe(lobby_id);
    expect((await find()).body.code).toBe('MATCHMAKER_NO_AVAILABLE_LOBBIES');
    const logs = `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby_id}/logs?stream=std_out`;
    const printed = await waitFor(async () => {
      const { lines } = await opened.api.ok('GET', logs, { token: game.cloud_token });
      return lines.map((line: string) => atob(line))[0];
    }, 'the server to print its configuration');
    expect(printed).toBe('{"map":"desert"}');
    expect(await remove(lobby_id)).toEqual({ did_remove: true });
  });

  test('a private one is neither listed nor found, and can be joined by its id', async () => {
    const { body } = await create({ publicity: 'private' });
    const { lobby_id } = body.lobby;
    expect(await list()).toEqual([]);
    expect((await find()).body.code).toBe('MATCHMAKER_NO_AVAILABLE_LOBBIES');
    const joined = await opened.api.post('/matchmaker/lobbies/join', game.public_token, { lobby_id });
    expect(joined.body.lobby.lobby_id).toBe(lobby_id);
    expect(await remove(lobby_id)).toEqual({ did_remove: true });
  });
});
