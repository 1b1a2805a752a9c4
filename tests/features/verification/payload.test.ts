import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { connectGameServer, find, makeControlledGame, waitForFirstLobby } from '../../support/game-server.ts';
import { writeIpDatabase } from '../../support/ip-database.ts';
import { openProvider } from '../../support/provider.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const LOCATION = { latitude: 50.5, longitude: 8.25 };
const directory = await mkdtemp(joinPath(tmpdir(), 'muster-ip-'));
const file = joinPath(directory, 'places.mmdb');
await Bun.write(file, writeIpDatabase([{ address: '127.0.0.1', location: LOCATION }]));
const provider = openProvider();
const muster = shareService({ MUSTER_OUTBOUND_ALLOW: provider.allow, MUSTER_IP_DATABASE: file });
afterAll(async () => {
  await provider[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});
beforeEach(() => {
  provider.requests.length = 0;
});

const SECRET = `whsec_${Buffer.from('a secret of 24 bytes, or').toString('base64')}`;
const HEADERS = { 'X-Game-Key': 'key', 'x-other': '' };
const action = () => ({
  enabled: true,
  verification_config: { url: `${provider.url}?game=1`, headers: HEADERS },
});
const mode = {
  actions: { find: action(), join: action(), create: { ...action(), enable_public: true } },
  taggable: true,
  allow_dynamic_max_players: true,
};
const makeVerifiedGame = () => makeControlledGame(muster, { game_modes: { default: mode, other: mode } });
const USER_AGENT = 'Player/1.0 (test)';
const call = (path: string, token: string, body: object) =>
  muster.api.call('POST', `/matchmaker/lobbies/${path}`, { token, body, headers: { 'user-agent': USER_AGENT } });
const only = () => {
  expect(provider.requests.length).toBe(1);
  const [request] = provider.requests;
  if (!request) throw new Error('a request was sent');
  return request;
};
const CLIENTS = { '127.0.0.1': { user_agent: USER_AGENT, ...LOCATION } };

describe("verification: the request to a game's own server", () => {
  test('for a find that creates a lobby has exactly these members, and no lobby yet', async () => {
    const game = await makeVerifiedGame();
    const verification_data = { session: 'x', deep: [1, null, { '': 'ü' }] };
    const body = { game_modes: ['default'], tags: { map: 'ice' }, max_players: 3, verification_data };
    expect((await call('find', game.public_token, body)).status).toBe(200);
    const { method, path, headers, body: payload } = only();
    expect([method, path]).toEqual(['POST', '/verify?game=1']);
    expect(payload).toEqual({
      verification_data,
      game: {
        namespace_id: game.namespace_id,
        game_mode_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        game_mode_name_id: 'default',
        lobby: null,
        state: null,
        config: null,
        tags: { map: 'ice' },
        dynamic_max_players: 3,
      },
      clients: CLIENTS,
      join_kind: 'normal',
      kind: 'find',
    });
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'application/json',
      'x-game-key': 'key',
      'x-other': '',
    });
    expect(headers.has('webhook-signature')).toBe(false);
    // The player's own tokens are not sent.
    expect(headers.has('authorization')).toBe(false);
  });

  test('for a find into a lobby has that lobby and its state', async () => {
    const game = await makeVerifiedGame();
    await find(muster, game);
    const lobby_id = await waitForFirstLobby(muster, game);
    const game_server = await connectGameServer(muster, game, lobby_id);
    // The ids of the region and of the game mode are the same everywhere.
    const { SERVICE_REGION_ID: region_id, SERVICE_GAME_MODE_ID: game_mode_id } = game_server.environment;
    const live = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/analytics/matchmaker/live`;
    const { lobbies } = await muster.api.ok('GET', live, { token: game.cloud_token });
    expect(lobbies).toMatchObject([{ lobby_group_id: game_mode_id, lobby_group_name_id: 'default', region_id }]);
    const { game: read } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    expect(read.available_regions).toMatchObject([{ region_id }]);
    await game_server.setState({ round: 3, map: ['ü'] });
    provider.requests.length = 0;
    expect((await call('find', game.public_token, { game_modes: ['default'], players: 2 })).body.lobby.lobby_id).toBe(
      lobby_id,
    );
    const { body } = only();
    expect(body).toMatchObject({
      verification_data: null,
      game: {
        game_mode_id,
        game_mode_name_id: 'default',
        lobby: { lobby_id, region_id, region_name_id: 'local', is_closed: false },
        state: { round: 3, map: ['ü'] },
        config: null,
        tags: {},
        dynamic_max_players: null,
      },
      clients: CLIENTS,
      join_kind: 'party',
      kind: 'find',
    });
    const { create_ts } = body.game.lobby;
    expect(create_ts).toMatch(/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/);
    expect(Math.abs(Date.parse(create_ts) - muster.clock.now().getTime())).toBeLessThan(60_000);
  });

  test('for a join has the lobby, closed or not, and none of its tags', async () => {
    const game = await makeVerifiedGame();
    const { body: found } = await call('find', game.public_token, { game_modes: ['default'], tags: { map: 'ice' } });
    const { lobby_id } = found.lobby;
    await (await connectGameServer(muster, game, lobby_id)).setClosed(true);
    provider.requests.length = 0;
    const joined = await call('join', game.public_token, { lobby_id, verification_data: 'text' });
    expect(joined.status).toBe(200);
    expect(only().body).toMatchObject({
      verification_data: 'text',
      game: { game_mode_name_id: 'default', lobby: { lobby_id, is_closed: true }, state: null, config: null, tags: {} },
      join_kind: 'normal',
      kind: 'join',
    });
  });

  test('for a create has the requested lobby, and no existing one', async () => {
    const game = await makeVerifiedGame();
    const body = { game_mode: 'default', tags: { a: 'b' }, max_players: 2, lobby_config: { hard: true, names: [] } };
    expect((await call('create', game.public_token, body)).status).toBe(200);
    expect(only().body).toMatchObject({
      verification_data: null,
      game: { lobby: null, state: null, config: { hard: true, names: [] }, tags: { a: 'b' }, dynamic_max_players: 2 },
      kind: 'create',
      join_kind: 'normal',
    });
  });

  test('has numbers as they were written, because JavaScript rounds ids of 64 bits', async () => {
    const game = await makeVerifiedGame();
    const data = '{"steam_id":76561198012345679,"list":[-12345678901234567890,1.10,1e400,0.1234567890123456789]}';
    const send = (kind: string, text: string) =>
      fetch(`${muster.config.local_url}/matchmaker/lobbies/${kind}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${game.public_token}` },
        body: text,
      });
    const created = await send('create', `{"game_mode":"default","lobby_config":${data},"verification_data":${data}}`);
    expect(created.status).toBe(200);
    const { text } = only();
    expect(text).toContain(`"verification_data":${data}`);
    expect(text).toContain(`"config":${data}`);
    const { lobby } = await created.json();
    const game_server = await connectGameServer(muster, game, lobby.lobby_id);
    expect(game_server.environment.SERVICE_LOBBY_CONFIG).toBe(data);
    for (const [kind, wanted] of [
      ['join', `"lobby_id":"${lobby.lobby_id}"`],
      ['find', '"game_modes":["default"]'],
    ] as const) {
      provider.requests.length = 0;
      expect((await send(kind, `{${wanted},"verification_data":${data}}`)).status).toBe(200);
      expect(only().text).toContain(`"verification_data":${data}`);
    }
  });

  test('has no lobby if the lobby is not ready, because it does not run yet, but the state that it has set', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: mode }, is_ready: false });
    const first = find(muster, game);
    const game_server = await connectGameServer(muster, game, await waitForFirstLobby(muster, game));
    await game_server.setState({ map: 'dunes' });
    provider.requests.length = 0;
    const second = find(muster, game);
    await waitFor(() => provider.requests.length > 0, 'the request about the second player');
    expect(only().body.game).toMatchObject({ lobby: null, state: { map: 'dunes' } });
    await game_server.ready();
    expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([200, 200]);
  });

  test('is configured by the name "verification" too, and may have a Content-Type of its own', async () => {
    const verification = { url: provider.url, headers: { 'Content-Type': 'application/x-game' } };
    const game = await makeControlledGame(muster, {
      game_modes: { default: { actions: { find: { enabled: true, verification } } } },
    });
    expect((await find(muster, game)).status).toBe(200);
    expect(only().headers.get('content-type')).toBe('application/x-game');
  });
});

describe('verification: no request is sent', () => {
  test('for an action without verification, a development token, or a request that is refused anyway', async () => {
    const game = await makeControlledGame(muster, {
      game_modes: {
        default: { actions: { join: action(), create: action() } },
        off: { actions: { find: { ...action(), enabled: false } } },
      },
    });
    const { body } = await find(muster, game);
    const path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/tokens/development`;
    const ports = { game: { port: 7_777, protocol: 'http' } };
    const { token } = await muster.api.ok('POST', path, {
      token: game.cloud_token,
      body: { hostname: 'localhost', ports },
    });
    for (const [action_name, wanted] of [
      ['find', { game_modes: ['default'] }],
      ['join', { lobby_id: body.lobby.lobby_id }],
      ['create', { game_mode: 'default' }],
    ] as const) {
      expect((await call(action_name, token, wanted)).status).toBe(200);
    }
    for (const [action_name, wanted, outcome] of [
      ['join', { lobby_id: crypto.randomUUID() }, '404 MATCHMAKER_LOBBY_NOT_FOUND'],
      ['create', { game_mode: 'default', publicity: 'public' }, '400 MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID'],
      ['create', { game_mode: 'off' }, '400 MATCHMAKER_CUSTOM_LOBBIES_DISABLED'],
      ['find', { game_modes: ['off'] }, '400 MATCHMAKER_FIND_DISABLED'],
    ] as const) {
      expect(outcomeOf(await call(action_name, game.public_token, wanted))).toBe(outcome);
    }
    expect(provider.requests).toEqual([]);
  });
});

describe('verification: its signature', () => {
  test("is accepted by a receiver's library, and not for another body", async () => {
    const verification = { url: provider.url, headers: { 'webhook-id': 'not mine' }, secret: SECRET };
    const game = await makeControlledGame(muster, {
      game_modes: { default: { actions: { find: { enabled: true, verification } } } },
    });
    const answer = await find(muster, game, { verification_data: 'ü' });
    const { text, headers } = only();
    const receiver = new Webhook(SECRET);
    expect(receiver.verify(text, Object.fromEntries(headers))).toMatchObject({ verification_data: 'ü' });
    expect(() => receiver.verify(`${text} `, Object.fromEntries(headers))).toThrow();
    expect(() =>
      new Webhook(`whsec_${Buffer.alloc(24).toString('base64')}`).verify(text, Object.fromEntries(headers)),
    ).toThrow();
    expect(headers.get('webhook-id')).toBe(answer.headers.get('rvt-ray-id'));
  });
});
