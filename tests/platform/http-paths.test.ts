import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import fc from 'fast-check';
import { type Route, route } from '../../src/platform/http/route.ts';
import { openTestApp, type TestApp } from '../support/http-app.ts';
import { sendRaw } from '../support/network/raw-http.ts';
import { rejectionOf } from '../support/refusal.ts';

const ID = '0190A0B0-c0d0-4e0f-8a0b-0c0d0e0f0a0b';

const open_to_anyone = { summary: 'For a test.', allow: 'anyone' } as const;
const Query = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  include: Type.Optional(Type.Boolean()),
  search: Type.Optional(Type.String({ maxLength: 10 })),
  order: Type.Optional(Type.Union([Type.Literal('up'), Type.Literal('down')])),
});
const ROUTES = [
  route('GET', '/things', { ...open_to_anyone, query: Query }, async ({ query }) => ({ query })),
  route('POST', '/things', open_to_anyone, async () => ({})),
  route('GET', '/things/:thing_id', open_to_anyone, async ({ params }) => params),
  route('POST', '/things/find', open_to_anyone, async () => ({})),
  route('DELETE', '/names/:name', { ...open_to_anyone, free_params: ['name'] }, async ({ params }) => params),
  route('GET', '/private', { summary: 'For a test.', allow: ['identity'] }, async () => ({})),
];

let app: TestApp;
beforeAll(async () => {
  app = await openTestApp(ROUTES);
});
afterAll(() => app[Symbol.asyncDispose]());

/** Sends a request with exactly this request line. */
const send = (method: string, target: string, host = 'here') =>
  sendRaw(app.api.base_url, `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);

const codeOf = async (...request: Parameters<typeof send>) => {
  const { status, body } = await send(...request);
  return `${status} ${body.code}`;
};

describe('no route matches', () => {
  const NOWHERE = [
    '/',
    '/nothing',
    '/thing',
    '/Things',
    '/things/',
    '//things',
    '/things//',
    '/./nothing',
    `/things/${ID}/`,
    `/things/${ID}/more`,
    '/things/7',
    `/things/${ID}x`,
    `/things/${ID.slice(1)}`,
    `/things/${ID.replaceAll('-', '')}`,
    `/things/%7B${ID}%7D`,
    `/things/${ID}%00`,
    `/things/${ID}%2f..`,
    '/things/%',
    '/things/%zz',
    '/things/%ff',
    '/things/%00',
    '/things/__proto__',
    '/things/..%2f..%2fprivate',
    '/%74hings',
    '/things%3Flimit=1',
    '/things;x=1',
    '/things#x',
    '/things\\',
    `/${'a/'.repeat(2_000)}`,
    `/${'x'.repeat(10_000)}`,
  ];
  test.each(NOWHERE.map((path) => [path.slice(0, 50), path]))('%s', async (_shown, path) => {
    expect(await codeOf('GET', path)).toBe('404 API_NOT_FOUND');
  });

  test('a name that cannot be decoded, or that the database cannot store', async () => {
    for (const name of ['%00', 'a%00b', '%', '%zz'])
      expect(await codeOf('DELETE', `/names/${name}`)).toBe('404 API_NOT_FOUND');
  });
});

describe('a path that exists', () => {
  const METHODS: [method: string, path: string, allowed: string][] = [
    ['PUT', '/things', 'GET, POST'],
    ['PATCH', '/things', 'GET, POST'],
    ['DELETE', '/things', 'GET, POST'],
    ['TRACE', '/things', 'GET, POST'],
    ['PROPFIND', '/things', 'GET, POST'],
    ['POST', `/things/${ID}`, 'GET'],
    ['GET', '/things/find', 'POST'],
    ['PUT', '/things/find', 'POST'],
    ['GET', '/names/x', 'DELETE'],
    ['POST', '/private', 'GET'],
  ];
  test.each(METHODS)('%s %s: the error names the supported methods', async (method, path, allowed) => {
    const { status, body } = await send(method, path);
    expect([status, body.code, body.message]).toEqual([
      400,
      'API_METHOD_NOT_ALLOWED',
      `This path does not support the method ${method}. Use one of: ${allowed}.`,
    ]);
  });

  test('answers HEAD like GET without the body, with the same authorization', async () => {
    const [get, head] = [await send('GET', '/things'), await send('HEAD', '/things')];
    expect([head.status, head.body, head.headers.get('content-length')]).toEqual([
      200,
      '',
      get.headers.get('content-length'),
    ]);
    expect((await send('HEAD', '/nothing')).status).toBe(404);
    expect((await send('HEAD', '/private')).status).toBe(401);
  });

  test('answers OPTIONS without content, as every path does', async () => {
    for (const path of ['/things', '/private', '/nothing']) {
      const { status, body } = await send('OPTIONS', path);
      expect([status, body]).toEqual([204, '']);
    }
  });

  test('has its ids in lower case, and its names decoded', async () => {
    expect((await send('GET', `/things/${ID}`)).body).toEqual({ thing_id: ID.toLowerCase() });
    expect((await send('DELETE', '/names/%C3%84%20b%2Fc%25')).body).toEqual({ name: 'Ä b/c%' });
    expect((await send('DELETE', '/names/__proto__')).body).toEqual({ name: '__proto__' });
  });
});

describe('an invalid query is refused with the name of the parameter:', () => {
  const BAD: [query: string, parameter: string][] = [
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=1.9', 'limit'],
    ['limit=1e1', 'limit'],
    ['limit=0x5', 'limit'],
    ['limit=true', 'limit'],
    ['limit=', 'limit'],
    ['limit=%205', 'limit'],
    ['limit=99999999999999999999', 'limit'],
    ['limit=5&limit=x', 'limit'],
    ['limit=5&limit=5', 'limit'],
    ['include=maybe', 'include'],
    ['include=', 'include'],
    ['order=sideways', 'order'],
    ['search=12345678901', 'search'],
    ['search=%00', 'search'],
    ['unknown=%00', 'unknown'],
  ];
  test.each(BAD)('%s', async (query, parameter) => {
    const { status, body } = await send('GET', `/things?${query}`);
    expect([status, body.code]).toEqual([400, 'API_BAD_QUERY_PARAMETER']);
    expect(body.message).toMatch(new RegExp(`^The query parameter "${parameter}" is invalid: [a-z]`));
  });
});

describe('a query is parsed:', () => {
  const GOOD: [query: string, parsed: object][] = [
    ['', {}],
    ['limit=100&include=true&search=a+b&order=up', { limit: 100, include: true, search: 'a b', order: 'up' }],
    ['include=false', { include: false }],
    ['search=5', { search: '5' }],
    ['search=true', { search: 'true' }],
    ['search=%zz', { search: '%zz' }],
    ['search=%ff', { search: '\ufffd' }],
    ['unknown=1', { unknown: '1' }],
    ['__proto__=1', JSON.parse('{"__proto__":"1"}')],
    ['constructor=1', { constructor: '1' }],
    ['&&=&', { '': '' }],
  ];
  test.each(GOOD)('%s', async (query, parsed) => {
    expect((await send('GET', `/things?${query}`)).body).toEqual({ query: parsed });
  });
});

test.each(['x', 'api', 'a.b', 'x:80', '[::1]'])('a short host name is valid: %s', async (host) => {
  expect((await send('GET', `/things/${ID}`, host)).body).toEqual({ thing_id: ID.toLowerCase() });
  expect(await codeOf('GET', '/nothing', host)).toBe('404 API_NOT_FOUND');
});

describe('a request with an invalid host, or with several, is refused with API_BAD_HOST:', () => {
  test.each([
    '',
    'a b',
    '[::1',
    'x:99999',
    '%zz',
    'a/b',
    'here/things?',
    '\t',
    'here\r\nHost: here',
    'here\r\nHost: there',
    '\r\nHost: here',
    'here, there',
  ])('%j', async (host) => {
    for (const path of ['/things', '/private', '/nothing'])
      expect(await codeOf('GET', path, host)).toBe('400 API_BAD_HOST');
  });
});

test('paths: no request line makes the service fail', async () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '/',
      '/things',
      '?',
      '&',
      '=',
      '%',
      '%2',
      '%00',
      '%2e%2e',
      '..',
      ';',
      '\\',
      ID,
      'limit',
      '__proto__',
    ),
    fc.string(),
    fc.webFragments(),
  );
  const target = fc.array(piece, { maxLength: 6 }).map((pieces) => `/${pieces.join('').replace(/[\s\0]/g, '')}`);
  const codes = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.constantFrom('GET', 'POST', 'DELETE', 'OPTIONS'), target, async (method, path) => {
      const { status, body } = await send(method, path);
      codes.add(`${status} ${body?.code ?? ''}`);
      expect(status).toBeLessThan(500);
    }),
    { numRuns: 500 },
  );
  expect([...codes]).toContain('404 API_NOT_FOUND');
});

describe('a service does not start with a route', () => {
  const for_cloud = { summary: 'For a test.', allow: ['cloud'] } as const;
  const WRONG: [name: string, route: Route, message: string][] = [
    [
      'that allows no caller',
      route('GET', '/things', { ...for_cloud, allow: [] }, async () => ({})),
      'broken invariant: GET /things names the kinds of token it takes',
    ],
    [
      'that names a game and has no access to it',
      route('GET', '/games/:game_id', for_cloud, async () => ({})),
      'broken invariant: GET /games/:game_id says what it does with the game it names',
    ],
    [
      'that has access to a game it does not name',
      route('PUT', '/things', { ...for_cloud, access: 'write' }, async () => ({})),
      'broken invariant: PUT /things names the game it has access to',
    ],
  ];
  test.each(WRONG)('%s', async (_name, wrong, message) => {
    expect((await rejectionOf(Error, openTestApp([wrong]))).message).toBe(message);
  });
});

test('routes: two routes with one operation name stop the start', async () => {
  const routes = ['/one', '/two'].map((path) =>
    route('GET', path, { ...open_to_anyone, operation: 'getThing' }, async () => ({})),
  );
  const { message } = await rejectionOf(Error, openTestApp(routes));
  expect(message).toContain('GET /two has a name of its own: GET /one is called "getThing" too');
});
