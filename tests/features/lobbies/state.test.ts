import { beforeAll, describe, expect, test } from 'bun:test';
import { selectHistory, selectWithin } from '../../../src/features/lobbies/developers/history-store.ts';
import { type LobbyUpdate, updateLobbies } from '../../../src/features/lobbies/store.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import type { TestGame } from '../../support/game.ts';
import { connectGameServer, find, type GameServer, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

let game: TestGame;
let game_server: GameServer;
const muster = shareService();
beforeAll(async () => {
  game = await makeControlledGame(muster);
  game_server = await connectGameServer(muster, game, (await seatOf(find(muster, game))).lobby_id);
});

describe('the state of a lobby', () => {
  test.each([
    { promise: 'must be JSON', state: 'not json', message: 'it is not JSON' },
    { promise: 'may have at most 65536 bytes', state: `"${'é'.repeat(32_767)}a"`, message: 'at most 65536 bytes' },
    { promise: 'may have at most 64 levels', state: '['.repeat(65) + ']'.repeat(65), message: 'deeper than 64' },
  ])('$promise', async ({ state, message }) => {
    await game_server.setState('"before"');
    const answer = await game_server.setState(state);
    expect(outcomeOf(answer)).toBe('400 API_BAD_BODY');
    expect(answer.body.message).toContain(message);
    expect((await game_server.getState(game_server.lobby_id)).body).toBe('before');
  });

  test.each([
    ['an object', '{"map": "ice", "round":1.50}'],
    ['a list', '[1,null,"two"]'],
    ['a text', '"ice"'],
    ['a number', '-0.5e3'],
    ['a boolean', 'false'],
    ['null', 'null'],
    ['unusual characters', '"\\u0000 \\ud800 é 🦊"'],
    ['65536 bytes', `"${'é'.repeat(32_767)}"`],
  ])('is stored unchanged: %s', async (_, state) => {
    expect(await game_server.setState(state)).toMatchObject({ status: 200, body: {} });
    const response = await fetch(`${muster.api.base_url}/matchmaker/lobbies/${game_server.lobby_id}/state`, {
      headers: { authorization: `Bearer ${game_server.token}` },
    });
    expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([
      200,
      'application/json',
      state,
    ]);
  });

  test('is not read for the history of a namespace and for exports, which do not have it', async () => {
    const { game_id, namespace_id } = game;
    const { queries } = muster.database;
    const window = { start: new Date(0), end: new Date(Date.now() + 3_600_000) };
    const [exported] = await Array.fromAsync(selectWithin(queries, game_id, window));
    for (const listed of [await selectHistory(queries, namespace_id, undefined), exported ?? []]) {
      expect(listed).toMatchObject([{ lobby_id: game_server.lobby_id }]);
      expect(listed[0]).not.toHaveProperty('state');
    }
  });

  test('keeps its numbers in every answer: ids of 64 bits are not rounded', async () => {
    const state = '{"id":12345678901234567890,"far":1e400}';
    await game_server.setState(state);
    for (const path of ['/matchmaker/lobbies/list?include_state=true', `/matchmaker/lobbies/${game_server.lobby_id}`]) {
      const headers = { authorization: `Bearer ${game.public_token}` };
      const text = await (await fetch(`${muster.api.base_url}${path}`, { headers })).text();
      expect(text).toContain(`"state":${state}`);
    }
  });

  test('is null before the first one, and again after an empty body', async () => {
    const quiet = await makeControlledGame(muster);
    const server = await connectGameServer(muster, quiet, (await seatOf(find(muster, quiet))).lobby_id);
    expect(await server.getState(server.lobby_id)).toMatchObject({ status: 200, body: null });
    await server.setState({ map: 'ice' });
    expect((await server.getState(server.lobby_id)).body).toEqual({ map: 'ice' });
    await server.setState('');
    expect((await server.getState(server.lobby_id)).body).toBeNull();
  });

  test('can be read by every lobby of the namespace, and by no other caller', async () => {
    await game_server.setState('"here"');
    const near = await seatOf(find(muster, game));
    const far_game = await makeControlledGame(muster);
    const far = await connectGameServer(muster, far_game, (await seatOf(find(muster, far_game))).lobby_id);
    expect((await game_server.getState(near.lobby_id)).body).toBe('here');
    const unknown = '404 MATCHMAKER_LOBBY_NOT_FOUND';
    expect(outcomeOf(await far.getState(game_server.lobby_id))).toBe(unknown);
    expect(outcomeOf(await game_server.getState(far.lobby_id))).toBe(unknown);
    expect(outcomeOf(await game_server.getState(crypto.randomUUID()))).toBe(unknown);
    expect(outcomeOf(await game_server.getState('x'))).toBe('404 API_NOT_FOUND');
  });

  test('is right for each lobby when several set states and close concurrently; a stopped one is refused', async () => {
    const many = await makeControlledGame(muster, { game_modes: { default: { max_players: 1 } } });
    const seats = await Promise.all(Array.from({ length: 6 }, () => seatOf(find(muster, many))));
    const game_servers = await Promise.all(seats.map(({ lobby_id }) => connectGameServer(muster, many, lobby_id)));
    const [stopped, ...running] = game_servers;
    await stopped?.disconnected(seats[0]?.player_token ?? '');
    await waitFor(() => muster.inspector.stopReason(stopped?.lobby_id ?? ''), 'the lobby to stop');
    const calls = game_servers.flatMap((one, index) => [
      one.setState({ number: index }),
      one.setClosed(index % 2 === 0),
    ]);
    const outcomes = (await Promise.all(calls)).map(outcomeOf);
    expect(outcomes.splice(0, 2)).toEqual(['400 MATCHMAKER_LOBBY_STOPPED', '400 MATCHMAKER_LOBBY_STOPPED']);
    expect(outcomes).toEqual(outcomes.map(() => '200'));
    for (const [index, { lobby_id }] of running.entries()) {
      const { body } = await muster.api.get(`/matchmaker/lobbies/${lobby_id}`, many.public_token);
      expect([body.lobby.state, body.lobby.is_closed]).toEqual([{ number: index + 1 }, index % 2 === 1]);
    }
  });

  test('is the last one of several updates in a round, and independent of opening and closing', async () => {
    await using database = openDatabase(muster.database_address, 1);
    const { lobby_id } = game_server;
    const unknown_id = crypto.randomUUID();
    const readLobby = async () => {
      const { state, is_closed } = (await muster.api.get(`/matchmaker/lobbies/${lobby_id}`, game.public_token)).body
        .lobby;
      return { state, is_closed };
    };
    const report = async (...updates: Omit<LobbyUpdate, 'lobby_id'>[]) => {
      const all = updates.map((one) => ({ lobby_id, ...one }));
      const updates_of_round = [...all, { lobby_id: unknown_id, state: '3' }];
      const changes = await updateLobbies(database.queries, updates_of_round, muster.clock.now());
      expect([...changes]).toEqual([[lobby_id, 'done']]);
      return await readLobby();
    };
    expect(await report({ state: '1' }, { is_closed: true }, { state: '2' })).toEqual({ state: 2, is_closed: true });
    expect(await report({ is_closed: false })).toEqual({ state: 2, is_closed: false });
    expect(await report({ is_closed: true })).toEqual({ state: 2, is_closed: true });
    expect(await report({ state: '' })).toEqual({ state: undefined, is_closed: true });
    expect(await report({ state: '4' }, { is_closed: false }, { is_closed: true })).toEqual({
      state: 4,
      is_closed: true,
    });
    expect(await report({ state: '5', is_closed: false }, { state: '' })).toEqual({
      state: undefined,
      is_closed: false,
    });
  });
});
