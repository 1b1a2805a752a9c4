import { beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../support/game.ts';
import {
  connectGameServer,
  createGameServerClient,
  find,
  join,
  makeControlledGame,
  seatOf,
} from '../support/game-server.ts';
import { showSite, uploadSite } from '../support/site.ts';
import { outcomeOf, shareService } from '../support/suite.ts';

const NO_LOBBY = '00000000-0000-0000-0000-000000000000';

const muster = shareService();
let game: TestGame;
let lobby_id: string;
let name_id: string;
beforeAll(async () => {
  game = await makeControlledGame(muster);
  lobby_id = (await seatOf(find(muster, game))).lobby_id;
  const seen = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
  name_id = seen.game.name_id;
});

const namespace = (end: string) => `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}${end}`;
const asDeveloper = (method: string, end: string, body: object) =>
  muster.api.ok(method, namespace(end), { token: game.cloud_token, body });
const makeDevelopmentToken = async (): Promise<string> =>
  (await asDeveloper('POST', '/tokens/development', { hostname: 'laptop' })).token;

describe('1. lobbies.join', () => {
  /** Joins as a page of the namespace's site does. */
  const joinFromPage = (host = `${name_id}.sites.localhost`, others: Record<string, string> = {}) =>
    muster.api.call('POST', '/matchmaker/lobbies/join', {
      headers: { origin: `http://${host}`, ...others },
      body: { lobby_id },
    });

  test('requires no token when tokenless authentication is enabled in the game namespace', async () => {
    await asDeveloper('PUT', '/domain-public-auth', { enabled: true });
    const { status, body } = await joinFromPage();
    expect([status, body.lobby?.lobby_id]).toEqual([200, lobby_id]);
    expect((await joinFromPage('elsewhere.example')).status).toBe(401);
  });

  test.each(['Bearer', 'Basic dXNlcjpwYXNz'])(
    'requires none either with a header "Authorization: %s", which has no bearer token',
    async (authorization) => {
      await asDeveloper('PUT', '/domain-public-auth', { enabled: true });
      expect((await joinFromPage(undefined, { authorization })).status).toBe(200);
      expect(outcomeOf(await joinFromPage('elsewhere.example', { authorization }))).toBe('401 API_UNAUTHORIZED');
    },
  );

  test('refuses an invalid token, also from a page that needs none', async () => {
    await asDeveloper('PUT', '/domain-public-auth', { enabled: true });
    const answer = await joinFromPage(undefined, { authorization: 'Bearer nonsense' });
    expect(outcomeOf(answer)).toBe('401 TOKEN_INVALID');
  });

  test('requires a token otherwise', async () => {
    await asDeveloper('PUT', '/domain-public-auth', { enabled: false });
    expect((await joinFromPage()).status).toBe(401);
    expect((await muster.api.post('/matchmaker/lobbies/join', undefined, { lobby_id })).status).toBe(401);
  });

  test('accepts a development namespace token for mock responses', async () => {
    const before = await muster.inspector.measure();
    const mocked = await join(muster, { ...game, public_token: await makeDevelopmentToken() }, lobby_id);
    expect(mocked.status).toBe(200);
    expect(mocked.body.lobby).toMatchObject({ lobby_id: NO_LOBBY, region: { region_id: 'dev-lcl' } });
    expect(await muster.inspector.measure()).toEqual(before);
  });

  test('accepts a public namespace token for general authentication', async () => {
    expect((await seatOf(join(muster, game, lobby_id))).lobby_id).toBe(lobby_id);
  });

  test('accepts no token of another kind', async () => {
    for (const token of [game.cloud_token, game.service_token, muster.administrator_token]) {
      const answer = await muster.api.post('/matchmaker/lobbies/join', token, { lobby_id });
      expect(outcomeOf(answer)).toBe('401 CLAIMS_MISSING_ENTITLEMENT');
    }
  });
});

describe('2. lobbies.setClosed', () => {
  test('requires a lobby token', async () => {
    const game_server = await connectGameServer(muster, game, lobby_id);
    expect(outcomeOf(await createGameServerClient(muster, undefined).setClosed(false))).toBe('401 API_UNAUTHORIZED');
    for (const token of [game.public_token, game.cloud_token, game.service_token, muster.administrator_token]) {
      expect(outcomeOf(await createGameServerClient(muster, token).setClosed(true))).toBe(
        '401 CLAIMS_MISSING_ENTITLEMENT',
      );
    }
    expect(outcomeOf(await game_server.setClosed(false))).toBe('200');
  });

  test('or a development namespace token for mock responses', async () => {
    const before = await muster.inspector.measure();
    const closed = await createGameServerClient(muster, await makeDevelopmentToken()).setClosed(true);
    expect(closed).toMatchObject({ status: 200, body: {} });
    expect(await muster.inspector.measure()).toEqual(before);
  });
});

test('3. development namespace tokens are issued by createGameNamespaceTokenDevelopment, for one namespace', async () => {
  const token = await makeDevelopmentToken();
  expect(token).toStartWith('dev_');
  const seat = await seatOf(find(muster, { ...game, public_token: token }));
  const other_game = await makeControlledGame(muster);
  const path = `/cloud/games/${other_game.game_id}/namespaces/${other_game.namespace_id}/tokens/development`;
  const body = { hostname: 'laptop' };
  expect(outcomeOf(await muster.api.post(path, game.cloud_token, body))).toBe('404 GAME_NOT_FOUND');
  const other = await muster.api.ok('POST', path, { token: other_game.cloud_token, body });
  expect(outcomeOf(await createGameServerClient(muster, token).connected(seat.player_token))).toBe('200');
  expect(outcomeOf(await createGameServerClient(muster, other.token).connected(seat.player_token))).toBe(
    '400 TOKEN_ERROR',
  );
});

test('4. server and build listing endpoints act on the game associated with the token used', async () => {
  const other = await makeGame(muster.api, muster.administrator_token);
  const list = (of: TestGame, what: string, token: string) =>
    muster.api.get(`/games/${of.game_id}/environments/${of.namespace_id}/${what}`, token);
  for (const what of ['servers', 'builds']) {
    for (const token of [game.cloud_token, game.service_token]) {
      expect((await list(game, what, token)).body[what].length).toBeGreaterThan(0);
      expect(outcomeOf(await list(other, what, token))).toStartWith('404 GAME_');
    }
    expect((await list(other, what, other.cloud_token)).body[what]).toEqual([]);
    const across = { ...game, namespace_id: other.namespace_id };
    expect(outcomeOf(await list(across, what, game.cloud_token))).toBe('404 GAME_ENVIRONMENT_NOT_FOUND');
  }
});

test('5. namespace CDN users are defined with a user name and a bcrypt-hashed password', async () => {
  const own_game = await makeGame(muster.api, muster.administrator_token);
  const site_id = await uploadSite(muster.api, own_game, { 'index.html': 'for Ann' });
  await showSite(muster.api, own_game, { site_id });
  const settings = `/cloud/games/${own_game.game_id}/namespaces/${own_game.namespace_id}`;
  const token = own_game.cloud_token;
  const password = await Bun.password.hash('secret', { algorithm: 'bcrypt', cost: 4 });
  await muster.api.ok('POST', `${settings}/auth-user`, { token, body: { user: 'ann', password } });
  await muster.api.ok('PUT', `${settings}/cdn-auth`, { token, body: { auth_type: 'basic' } });
  const { game: seen } = await muster.api.ok('GET', `/cloud/games/${own_game.game_id}`, { token });
  const visit = async (credentials?: string) => {
    const headers = new Headers({ host: `${seen.name_id}.sites.localhost` });
    if (credentials !== undefined) headers.set('authorization', `Basic ${btoa(credentials)}`);
    const response = await fetch(muster.config.public_url, { headers });
    return response.status === 200 ? await response.text() : response.status;
  };
  expect([await visit(), await visit('ann:wrong'), await visit(`ann:${password}`)]).toEqual([401, 401, 401]);
  expect(await visit('ann:secret')).toBe('for Ann');
});

test('6. the join response gives the player a player.token that the client passes to the lobby server', async () => {
  const { player_token } = await seatOf(join(muster, game, lobby_id));
  const game_server = await connectGameServer(muster, game, lobby_id);
  expect(outcomeOf(await game_server.connected(`${player_token.slice(0, -4)}AAAA`))).toBe('400 TOKEN_ERROR');
  expect(outcomeOf(await game_server.connected(player_token))).toBe('200');
});

describe('a token is attached by "Authorization: Bearer" (not shown; the reference API has it)', () => {
  test.each([
    ['Bearer <token>', (token: string) => ({ authorization: `Bearer ${token}` }), '200'],
    ['Basic <token>', (token: string) => ({ authorization: `Basic ${token}` }), '401 API_UNAUTHORIZED'],
    ['<token>', (token: string) => ({ authorization: token }), '401 API_UNAUTHORIZED'],
    ['another header', (token: string) => ({ 'x-token': token }), '401 API_UNAUTHORIZED'],
    ['nothing', () => ({}), '401 API_UNAUTHORIZED'],
    ['Bearer nonsense', () => ({ authorization: 'Bearer nonsense' }), '401 TOKEN_INVALID'],
  ])('%s', async (_, headersOf, outcome) => {
    const headers: Record<string, string> = headersOf(game.cloud_token);
    expect(outcomeOf(await muster.api.call('GET', `/cloud/games/${game.game_id}`, { headers }))).toBe(outcome);
  });
});
