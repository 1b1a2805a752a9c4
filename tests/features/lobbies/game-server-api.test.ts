import { beforeAll, describe, expect, test } from 'bun:test';
import type { Answer } from '../../support/api.ts';
import type { TestGame } from '../../support/game.ts';
import {
  connectGameServer,
  createGameServerClient,
  find,
  type GameServer,
  makeControlledGame,
  seatOf,
} from '../../support/game-server.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

let game: TestGame;
let game_server: GameServer;
const muster = shareService();
beforeAll(async () => {
  game = await makeControlledGame(muster);
  game_server = await connectGameServer(muster, game, (await seatOf(find(muster, game))).lobby_id);
});

/** Every call of a lobby, valid except for its token. */
const CALLS: [string, (caller: ReturnType<typeof createGameServerClient>) => Promise<Answer>][] = [
  ['ready', (caller) => caller.ready()],
  ['setClosed', (caller) => caller.setClosed(true)],
  ['setState', (caller) => caller.setState({})],
  ['getState', (caller) => caller.getState(game_server.lobby_id)],
  ['connected', (caller) => caller.connected('x')],
  ['disconnected', (caller) => caller.disconnected('x')],
];

describe('the game-server API refuses every token but that of a lobby in', () => {
  const tokens = (): [string, string | undefined, string][] => [
    ['no token', undefined, '401 API_UNAUTHORIZED'],
    ['garbage', 'garbage', '401 TOKEN_INVALID'],
    ['a changed lobby token', `${game_server.token.slice(0, -4)}AAAA`, '401 TOKEN_INVALID'],
    ['a public token', game.public_token, '401 CLAIMS_MISSING_ENTITLEMENT'],
    ['a cloud token', game.cloud_token, '401 CLAIMS_MISSING_ENTITLEMENT'],
    ['a service token', game.service_token, '401 CLAIMS_MISSING_ENTITLEMENT'],
    ["the administrator's token", muster.administrator_token, '401 CLAIMS_MISSING_ENTITLEMENT'],
  ];

  test.each(CALLS)('%s', async (_, call) => {
    for (const [whose, token, expected] of tokens()) {
      expect([whose, outcomeOf(await call(createGameServerClient(muster, token)))]).toEqual([whose, expected]);
    }
  });
});

describe('ready', () => {
  test('may be called twice, and the second call changes nothing', async () => {
    const before = await muster.inspector.measure();
    expect(await game_server.ready()).toMatchObject({ status: 200, body: {} });
    expect(await muster.inspector.measure()).toEqual(before);
  });

  test('is for the lobby of the token: players who wait for another lobby continue to wait', async () => {
    const slow = await makeControlledGame(muster, { is_ready: false, game_modes: { default: { max_players: 1 } } });
    const finding = [find(muster, slow), find(muster, slow)].map((answer) => answer.then(({ body }) => body.lobby));
    const lobbies = await waitFor(async () => {
      const all = await muster.inspector.lobbiesOf(slow.namespace_id);
      return all.length === 2 ? all : undefined;
    }, 'two lobbies');
    const [first, second] = await Promise.all(lobbies.map(({ lobby_id }) => connectGameServer(muster, slow, lobby_id)));
    await first?.ready();
    expect((await Promise.race(finding)).lobby_id).toBe(first?.lobby_id);
    expect((await muster.inspector.lobbiesOf(slow.namespace_id)).filter(({ is_ready }) => is_ready)).toHaveLength(1);
    await second?.ready();
    const answered = (await Promise.all(finding)).map(({ lobby_id }) => lobby_id);
    expect(answered.toSorted()).toEqual(lobbies.map(({ lobby_id }) => lobby_id).toSorted());
  });

  test('is refused once the lobby has stopped, like every call but players/disconnected', async () => {
    const seat = await seatOf(find(muster, game, { game_modes: ['default'] }));
    const stopped_game = await makeControlledGame(muster);
    const { lobby_id, player_token } = await seatOf(find(muster, stopped_game));
    const late = await connectGameServer(muster, stopped_game, lobby_id);
    await late.disconnected(player_token);
    await waitFor(() => muster.inspector.stopReason(lobby_id), 'the lobby to stop');
    const stopped = '400 MATCHMAKER_LOBBY_STOPPED';
    const refused = await late.ready();
    expect(outcomeOf(refused)).toBe(stopped);
    // The advice to players, to find another lobby, would be wrong here.
    expect(refused.body.message).toContain('calls about it have no effect');
    expect(outcomeOf(await late.setClosed(false))).toBe(stopped);
    expect(outcomeOf(await late.setState(1))).toBe(stopped);
    expect(outcomeOf(await late.getState(game_server.lobby_id))).toBe(stopped);
    expect(outcomeOf(await late.connected(player_token))).toBe('400 MATCHMAKER_PLAYER_REMOVED');
    expect(outcomeOf(await late.disconnected(player_token))).toBe('200');
    await game_server.disconnected(seat.player_token);
  });
});

describe("a lobby's server", () => {
  test('has its lobby in its environment, under both names', async () => {
    const { environment } = game_server;
    const expected_variables = {
      LOBBY_ID: game_server.lobby_id,
      NAMESPACE_ID: game.namespace_id,
      NAMESPACE_NAME: 'prod',
      GAME_MODE_NAME: 'default',
      REGION_NAME: 'local',
      MAX_PLAYERS_NORMAL: '32',
      MAX_PLAYERS_DIRECT: '32',
      MAX_PLAYERS_PARTY: '32',
      CPU: '1000',
      API_ENDPOINT: muster.api.base_url,
      TOKEN: game_server.token,
      LOBBY_TOKEN: game_server.token,
    };
    for (const [name, value] of Object.entries(expected_variables)) {
      expect([name, environment[`SERVICE_${name}`], environment[`RIVET_${name}`]]).toEqual([name, value, value]);
    }
    expect(environment.SERVICE_LOBBY_TAGS).toBeUndefined();
    expect(environment.PORT_game).toMatch(/^\d{5}$/);
  });

  test('has its log under the id of its lobby, and no other', async () => {
    const path = (game_id: string, lobby_id: string, stream = 'std_out') =>
      `/cloud/games/${game_id}/matchmaker/lobbies/${lobby_id}/logs?stream=${stream}`;
    const { get } = muster.api;
    const read = async () => {
      const { lines } = (await get(path(game.game_id, game_server.lobby_id), game.cloud_token)).body;
      return lines.length > 0 ? lines : undefined;
    };
    const lines = await waitFor(read, 'its lines');
    expect(lines.map(atob)).toEqual([`this is ${game_server.lobby_id}`]);
    const stranger = await makeControlledGame(muster);
    const refused: [string, string, string][] = [
      [path(game.game_id, game_server.lobby_id), stranger.cloud_token, '404 GAME_NOT_FOUND'],
      [path(stranger.game_id, game_server.lobby_id), stranger.cloud_token, '404 MATCHMAKER_LOBBY_NOT_FOUND'],
      [path(game.game_id, crypto.randomUUID()), game.cloud_token, '404 MATCHMAKER_LOBBY_NOT_FOUND'],
      [path(game.game_id, game_server.lobby_id, 'std_in'), game.cloud_token, '400 API_BAD_QUERY_PARAMETER'],
      [path(game.game_id, game_server.lobby_id), game_server.token, '401 CLAIMS_MISSING_ENTITLEMENT'],
    ];
    for (const [where, token, expected] of refused) {
      expect(outcomeOf(await get(where, token))).toBe(expected);
    }
  });
});
