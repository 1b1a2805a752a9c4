import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Answer } from '../support/api.ts';
import { makeGame, type TestGame } from '../support/game.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { outcomeOf } from '../support/suite.ts';
import { EMPTY, expectShape, listOf } from './exact-shapes.ts';
import { ERROR, VALIDATION_ERROR } from './specification.ts';

let opened: TestService;
let game: TestGame;
beforeAll(async () => {
  opened = await openTestService();
  game = await makeGame(opened.api, opened.administrator_token);
});
afterAll(() => opened[Symbol.asyncDispose]());

const path = (end = '') => `/cloud/games/${game.game_id}${end}`;
const namespace = (end: string) => path(`/namespaces/${game.namespace_id}${end}`);
const environment = (end: string) => `/games/${game.game_id}/environments/${game.namespace_id}${end}`;
const UNKNOWN_ID = crypto.randomUUID();

/** One refusal of each kind: the case, its request, and the answer's status and code. */
const REFUSALS: [string, () => Promise<Answer>, string][] = [
  ['an unknown path', () => opened.api.get('/nothing'), '404 API_NOT_FOUND'],
  ['an unsupported method', () => opened.api.put('/cloud/bootstrap', '', {}), '400 API_METHOD_NOT_ALLOWED'],
  ['no token', () => opened.api.get('/cloud/games'), '401 API_UNAUTHORIZED'],
  ['an invalid token', () => opened.api.get('/cloud/games', 'nonsense'), '401 TOKEN_INVALID'],
  ['a token of another kind', () => opened.api.get(path(), game.public_token), '401 CLAIMS_MISSING_ENTITLEMENT'],
  ['an id that is no UUID', () => opened.api.get('/cloud/games/mine', game.cloud_token), '404 API_NOT_FOUND'],
  ["another tenant's game", () => opened.api.get(`/cloud/games/${UNKNOWN_ID}`, game.cloud_token), '404 GAME_NOT_FOUND'],
  [
    'a body that is no JSON',
    () => opened.api.post(namespace('/mm-config/validate'), game.cloud_token, '{'),
    '400 API_BAD_BODY',
  ],
  [
    'a body without a required member',
    () => opened.api.post(namespace('/mm-config/validate'), game.cloud_token, {}),
    '400 API_BAD_BODY',
  ],
  [
    'an invalid query',
    () => opened.api.get(environment('/servers?tags_json=[]'), game.cloud_token),
    '400 API_BAD_QUERY_PARAMETER',
  ],
  [
    'a body that is too large',
    () => opened.api.post(path('/versions'), game.cloud_token, `"${'x'.repeat(2 ** 20)}"`),
    '413 API_BODY_TOO_LARGE',
  ],
  [
    'an invalid configuration',
    () => opened.api.post(path('/versions'), game.cloud_token, { display_name: '', config: {} }),
    '400 VALIDATION_ERROR',
  ],
  [
    'a missing server',
    () => opened.api.get(environment(`/servers/${UNKNOWN_ID}`), game.cloud_token),
    '404 SERVERS_SERVER_NOT_FOUND',
  ],
  [
    'a missing lobby',
    () => opened.api.post('/matchmaker/lobbies/join', game.public_token, { lobby_id: UNKNOWN_ID }),
    '404 MATCHMAKER_LOBBY_NOT_FOUND',
  ],
  [
    'find without a game mode',
    () => opened.api.post('/v1/lobbies/find', game.public_token, { game_modes: [] }),
    '400 MATCHMAKER_NO_GAME_MODE_PROVIDED',
  ],
];

describe('error body shape: code, message, documentation (a URL), metadata', () => {
  test.each(REFUSALS)('%s', async (_, send, outcome) => {
    const answer = await send();
    expect(outcomeOf(answer)).toBe(outcome);
    expectShape(answer.body, ERROR);
    expect(answer.headers.get('content-type')).toStartWith('application/json');
    expect(answer.body.message).toMatch(/^[A-Z"].{10,}[.)]$/s);
  });

  test('the documentation is a URL that resolves to the explanation of the code', async () => {
    const checked = new Set<string>();
    for (const [, send] of REFUSALS) {
      const { code, documentation } = (await send()).body;
      if (checked.has(code)) continue;
      checked.add(code);
      const page = await fetch(documentation);
      expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
      const [, explained = ''] = (await page.text()).split(`id="${new URL(documentation).hash.slice(1)}"`);
      expect(explained.slice(0, 200)).toContain(code);
    }
    expect(checked.size).toBeGreaterThan(10);
  });

  test('the content of metadata depends on the code', async () => {
    const refused = await opened.api.post(path('/versions'), game.cloud_token, { display_name: '', config: {} });
    expect(refused.body.metadata.errors.length).toBeGreaterThan(0);
    expectShape(refused.body.metadata.errors, listOf(VALIDATION_ERROR));
    const misread = await opened.api.post(namespace('/mm-config/validate'), game.cloud_token, { max_players: 8 });
    expect(misread.body.metadata.errors[0]).toMatchObject({ path: ['lobby_count_max'] });
    const missing = await opened.api.get(path(), game.public_token);
    expect(missing.body).not.toHaveProperty('metadata');
  });
});

describe('updateNamespaceCdnAuthUser returns an error when the password is not a properly hashed bcrypt string', () => {
  const add = (password: string) =>
    opened.api.post(namespace('/auth-user'), game.cloud_token, { user: 'ann', password });
  test.each([
    ['the plain password', 'secret'],
    ['nothing', ''],
    ['a hash of another kind', '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$RdescudvJCsgt3ub+b6dWRWJTmaaJObG'],
    ['a truncated hash', '$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lh'],
  ])('%s', async (_, password) => {
    const answer = await add(password);
    expect(outcomeOf(answer)).toBe('400 CDN_INVALID_AUTH_USER_PASSWORD');
    expectShape(answer.body, ERROR);
  });

  test('a bcrypt hash is accepted', async () => {
    const { status, body } = await add(await Bun.password.hash('secret', { algorithm: 'bcrypt', cost: 4 }));
    expect(status).toBe(200);
    expectShape(body, EMPTY);
  });
});

describe('the mm-config validation endpoint reports content problems in the errors array of its normal response', () => {
  const validate = async (lobby_count_max: number, max_players: number): Promise<string[]> => {
    const body = { lobby_count_max, max_players };
    const { errors } = await opened.api.ok('POST', namespace('/mm-config/validate'), { token: game.cloud_token, body });
    expectShape(errors, listOf(VALIDATION_ERROR));
    return errors.map(({ path }: { path: string[] }) => path.join('/'));
  };

  test('each error has a path', async () => {
    expect(await validate(0, 8)).toEqual(['lobby-count/too-low']);
    expect(await validate(2 ** 32 - 1, 8)).toEqual(['lobby-count/too-high']);
    expect(await validate(16, 0)).toContain('max-players/too-low');
  });

  test('a valid configuration has no errors', async () => {
    expect(await validate(16, 8)).toEqual([]);
  });
});
