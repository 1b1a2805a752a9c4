import { beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../support/game.ts';
import { sendRaw } from '../support/network/raw-http.ts';
import { showSite, uploadSite } from '../support/site.ts';
import { shareService } from '../support/suite.ts';
import { isError, openSocket } from '../support/watch/socket.ts';

const UPGRADE: Record<string, string> = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-protocol': 'muster.watch.v1',
};

const muster = shareService();
let game: TestGame;
let site: string;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  const { game: seen } = await muster.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
  site = `${seen.name_id}.sites.localhost`;
  await showSite(muster.api, game, { site_id: await uploadSite(muster.api, game, { 'index.html': 'hello' }) });
});

const open = (options: Parameters<typeof openSocket>[1]) => openSocket(muster.config.public_url, options);

/** Sends an upgrade, and returns the raw answer. */
async function ask(headers: Record<string, string>, { method = 'GET', path = '/watch' } = {}) {
  const { host } = new URL(muster.config.public_url);
  const lines = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  const answer = await sendRaw(muster.config.public_url, `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
  return { ...answer, outcome: `${answer.status} ${answer.body.code}` };
}

const without = (...names: string[]) =>
  Object.fromEntries(Object.entries(UPGRADE).filter(([name]) => !names.includes(name)));

describe('an invalid upgrade is refused with an error of the catalogue:', () => {
  const CASES: [string, Record<string, string>, { method?: string; path?: string }, string][] = [
    ['no upgrade', { connection: 'close' }, {}, '400 WATCH_UPGRADE_REQUIRED'],
    ['an upgrade to another protocol', { ...without('upgrade'), upgrade: 'h2c' }, {}, '400 WATCH_UPGRADE_REQUIRED'],
    ['no subprotocol', without('sec-websocket-protocol'), {}, '400 WATCH_SUBPROTOCOL_REQUIRED'],
    [
      'another subprotocol',
      { ...UPGRADE, 'sec-websocket-protocol': 'muster.watch.v2, graphql-ws' },
      {},
      '400 WATCH_SUBPROTOCOL_REQUIRED',
    ],
    ['no key', without('sec-websocket-key'), {}, '400 API_BAD_SOCKET_HANDSHAKE'],
    ['a short key', { ...UPGRADE, 'sec-websocket-key': 'c2hvcnQ=' }, {}, '400 API_BAD_SOCKET_HANDSHAKE'],
    [
      'a key that is not Base64',
      { ...UPGRADE, 'sec-websocket-key': '!'.repeat(24) },
      {},
      '400 API_BAD_SOCKET_HANDSHAKE',
    ],
    ['no version', without('sec-websocket-version'), {}, '426 API_SOCKET_VERSION_NOT_SUPPORTED'],
    ['another version', { ...UPGRADE, 'sec-websocket-version': '8' }, {}, '426 API_SOCKET_VERSION_NOT_SUPPORTED'],
    ['a POST', UPGRADE, { method: 'POST' }, '400 API_METHOD_NOT_ALLOWED'],
    ['another path', UPGRADE, { path: '/watch/' }, '404 API_NOT_FOUND'],
    ['the path of a view', UPGRADE, { path: '/cloud/games' }, '401 API_UNAUTHORIZED'],
  ];
  test.each(CASES)('%s', async (_, headers, request, outcome) => {
    const answer = await ask(
      { ...headers, connection: headers.connection === 'close' ? 'close' : 'Upgrade, close' },
      request,
    );
    expect(answer.outcome).toBe(outcome);
    expect(answer.headers.get('content-type')).toStartWith('application/json');
    expect(answer.body.documentation).toContain('/docs/errors#');
  });

  test('an upgrade on the host of a site', async () => {
    const answer = await ask({ ...UPGRADE, connection: 'Upgrade, close', host: site });
    expect([answer.status, answer.headers.get('upgrade')]).toEqual([404, null]);
  });
});

describe('a page of another origin', () => {
  const PAGES: [string, (url: string) => string][] = [
    ['on another host', () => 'https://evil.example'],
    ['without a name', () => 'null'],
    ['on another port', () => 'http://127.0.0.1'],
    ["whose name begins like the service's", (url) => `${url}.evil.example`],
    ['with another scheme', (url) => url.replace('http:', 'https:')],
  ];
  for (const [which, originOf] of PAGES) {
    test(`${which} may watch what players may, and nothing of developers`, async () => {
      const origin = originOf(muster.config.public_url);
      using socket = open({ token: game.cloud_token, headers: { origin } });
      const { game_id, namespace_id } = game;
      const paths = [
        '/cloud/games',
        `/cloud/games/${game_id}`,
        `/games/${game_id}/environments/${namespace_id}/builds`,
        '/cloud/../cloud/games',
        '/matchmaker/../cloud/games',
        '/matchmaker/%2e%2e/cloud/games',
      ];
      for (const [index, path] of paths.entries()) {
        socket.send({ type: 'subscribe', id: `${index}`, path });
        const { id, error } = await socket.next(isError);
        expect([id, error.code]).toEqual([`${index}`, 'API_CORS_ORIGIN_NOT_ALLOWED']);
      }
      using player = open({ token: game.public_token, headers: { origin } });
      await player.body(await player.subscribe('a', '/matchmaker/lobbies/list'));
    });
  }

  test('a page of the service, or no page, may watch everything', async () => {
    const cases: Record<string, string>[] = [{ origin: muster.config.public_url }, {}];
    for (const headers of cases) {
      using socket = open({ token: game.cloud_token, headers });
      await socket.body(await socket.subscribe('a', '/cloud/games'));
    }
  });
});

describe("a namespace's own page", () => {
  const setTokenless = (enabled: boolean) =>
    muster.api.ok('PUT', `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/domain-public-auth`, {
      token: game.cloud_token,
      body: { enabled },
    });
  const subscribe = async (origin: string, path: string) => {
    using socket = open({ headers: { origin } });
    socket.send({ type: 'subscribe', id: 'a', path });
    const { type, error } = await socket.next(({ type }) => type === 'error' || type === 'body');
    return error?.code ?? type;
  };

  test('needs no token if the namespace allows that, like a GET', async () => {
    const origin = () => `http://${site}`;
    await setTokenless(false);
    expect(await subscribe(origin(), '/matchmaker/lobbies/list')).toBe('API_UNAUTHORIZED');
    await setTokenless(true);
    expect(await subscribe(origin(), '/matchmaker/lobbies/list')).toBe('body');
    expect(await subscribe('http://elsewhere.example', '/matchmaker/lobbies/list')).toBe('API_UNAUTHORIZED');
    // Statistics need a token anyway.
    expect(await subscribe(origin(), '/matchmaker/players/statistics')).toBe('API_UNAUTHORIZED');
    await setTokenless(false);
    expect(await subscribe(origin(), '/matchmaker/lobbies/list')).toBe('API_UNAUTHORIZED');
  });
});
