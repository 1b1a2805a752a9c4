import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join, resolve } from 'node:path';
import { route } from '../../src/platform/http/route.ts';
import { openTestApp, type TestApp } from '../support/http-app.ts';

const ROOT = resolve(import.meta.dir, '../..');
const OWN = 'https://play.example.com';
const LOCAL = 'http://127.0.0.1:8080';
const FOREIGN = [
  'https://evil.example',
  'http://play.example.com',
  'https://play.example.com:444',
  'https://play.example.com.evil.example',
  'https://evilplay.example.com',
  'https://play.example.com/',
  'HTTPS://PLAY.EXAMPLE.COM',
  'http://localhost:8080',
  'null',
  '*',
  '',
];
/** Games call these from their own pages; all other paths are for the developers of games. */
const OPEN = ['/matchmaker/x', '/v1/x', '/identity/x', '/group/x', '/portal/x', '/media/x', '/uploads/x', '/health/x'];
const CLOSED = [
  '/cloud/x',
  '/games/x',
  '/auth/x',
  '/matchmakers/x',
  '/healthy',
  '/',
  '/swagger',
  '/cloud/matchmaker/x',
];

const open = { summary: 'For a test.', allow: 'anyone' } as const;
let handled = 0;
const ROUTES = [...OPEN, ...CLOSED].map((path) =>
  route('POST', path, open, async () => {
    handled += 1;
    return {};
  }),
);

let app: TestApp;
beforeAll(async () => {
  app = await openTestApp([
    ...ROUTES,
    route('GET', '/matchmaker/private', { ...open, allow: ['public'] }, async () => ({})),
  ]);
});
afterAll(() => app[Symbol.asyncDispose]());

const call = (method: string, path: string, headers: Record<string, string>) => app.api.call(method, path, { headers });
const allowed = (headers: Headers): Record<string, string> =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-') || name === 'vary'));

describe('CORS: pages of other origins', () => {
  test.each(CLOSED)('may not call %s: the request is not executed, and the error cannot be read', async (path) => {
    const before = handled;
    for (const origin of FOREIGN) {
      for (const method of ['POST', 'OPTIONS']) {
        const { status, body, headers } = await call(method, path, { origin });
        expect([origin, status, body.code]).toEqual([origin, 403, 'API_CORS_ORIGIN_NOT_ALLOWED']);
        expect(body.message).toBe(
          `Browsers may not call this path from this origin. Call it from a server, or from ${OWN}, ${LOCAL}.`,
        );
        expect(allowed(headers)).toEqual({ vary: 'Origin' });
      }
    }
    expect(handled).toBe(before);
  });

  test.each(OPEN)('may call %s, and each origin is allowed by name', async (path) => {
    for (const origin of FOREIGN) {
      const { status, headers } = await call('POST', path, { origin });
      expect(status).toBe(200);
      expect(allowed(headers)).toEqual({
        'access-control-allow-origin': origin,
        'access-control-allow-credentials': 'true',
        'access-control-expose-headers':
          'rvt-ray-id, retry-after, ratelimit-limit, ratelimit-remaining, ratelimit-reset',
        vary: 'Origin',
      });
    }
  });

  test('may read the errors of paths that they may call', async () => {
    for (const [path, status] of [
      ['/matchmaker/nothing', 404],
      ['/matchmaker/private', 401],
    ] as const) {
      const answer = await call('GET', path, { origin: 'https://game.example' });
      expect(answer.status).toBe(status);
      expect(answer.headers.get('access-control-allow-origin')).toBe('https://game.example');
    }
  });
});

describe('CORS: pages of the service itself', () => {
  test.each([OWN, LOCAL])('%s may call every path', async (origin) => {
    for (const path of [...OPEN, ...CLOSED]) {
      const { status, headers } = await call('POST', path, { origin });
      expect(status).toBe(200);
      expect(headers.get('access-control-allow-origin')).toBe(origin);
    }
  });
});

describe('CORS: a preflight', () => {
  const PREFLIGHT = {
    'access-control-request-method': 'PUT',
    'access-control-request-headers': 'authorization,x-other',
  };

  test('names the allowed methods and headers for an hour, and needs no token', async () => {
    const { status, body, headers } = await call('OPTIONS', '/matchmaker/private', {
      ...PREFLIGHT,
      origin: 'https://game.example',
    });
    expect([status, body]).toEqual([204, '']);
    expect(allowed(headers)).toEqual({
      'access-control-allow-origin': 'https://game.example',
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
      'access-control-allow-headers':
        'Content-Type, Authorization, X-API-Version, X-Fern-Language, X-Fern-Runtime, X-Fern-Runtime-Version',
      'access-control-expose-headers': 'rvt-ray-id, retry-after, ratelimit-limit, ratelimit-remaining, ratelimit-reset',
      'access-control-max-age': '3600',
      vary: 'Origin',
    });
  });

  test('of the service itself is answered for every path', async () => {
    for (const path of CLOSED) {
      const { status, headers } = await call('OPTIONS', path, { ...PREFLIGHT, origin: OWN });
      expect([status, headers.get('access-control-allow-origin')]).toEqual([204, OWN]);
    }
  });
});

test('cookies: two files read them, for paths that are closed to other origins, so the open paths may allow credentials', async () => {
  const readers: string[] = [];
  for await (const path of new Bun.Glob('src/**/*.ts').scan({ cwd: ROOT })) {
    if (/get\('cookie'\)|CookieMap/i.test(await Bun.file(join(ROOT, path)).text())) readers.push(path);
  }
  expect(readers.toSorted()).toEqual([
    'src/features/hub/session-routes.ts',
    'src/features/identities/session-routes.ts',
  ]);
  const texts = await Promise.all(readers.map((path) => Bun.file(join(ROOT, path)).text()));
  const routes = texts.flatMap((text) => [...text.matchAll(/'(\/[^' ]+)'/g)].map(([, path]) => path));
  expect([...new Set(routes)].toSorted()).toEqual([
    '/auth/tokens/identity',
    '/hub/links',
    '/hub/session',
    '/hub/session/token',
  ]);
});

test('CORS: a request without an origin is answered, and no cache gives the answer to pages', async () => {
  for (const path of [...OPEN, ...CLOSED]) {
    const { status, headers } = await call('POST', path, {});
    expect(status).toBe(200);
    expect(allowed(headers)).toEqual({ vary: 'Origin' });
  }
});
