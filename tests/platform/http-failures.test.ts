import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { ServiceError } from '../../src/platform/errors.ts';
import { route } from '../../src/platform/http/route.ts';
import type { Answer } from '../support/api.ts';
import { openTestApp, type TestApp } from '../support/http-app.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const SECRET = 'select password from /etc/passwd';

const circle: { itself?: unknown } = {};
circle.itself = circle;

/** Unexpected values that a handler throws. */
const UNEXPECTED: Record<string, () => unknown> = {
  error: () => new Error(SECRET),
  error_with_cause: () => new Error('outer', { cause: new TypeError(SECRET) }),
  text: () => SECRET,
  nothing: () => undefined,
  object: () => ({ code: 'API_NOT_FOUND', message: SECRET, status: 404 }),
  code_of_ours: () => Object.assign(new Error(SECRET), { code: 'MATCHMAKER_LOBBY_FULL', status: 400 }),
};

/** What a handler throws on purpose, with the answer. */
const EXPECTED: Record<
  string,
  { thrown: () => ServiceError; status: number; body: object; retry_after: string | null }
> = {
  plain: {
    thrown: () => new ServiceError('MATCHMAKER_LOBBY_FULL', {}),
    status: 400,
    body: {
      code: 'MATCHMAKER_LOBBY_FULL',
      message: 'The lobby is full. Find another one.',
      documentation: 'https://play.example.com/docs/errors#matchmaker-lobby-full',
    },
    retry_after: null,
  },
  with_metadata: {
    thrown: () => new ServiceError('API_FORBIDDEN', { reason: 'it is night' }, { metadata: { until: 7 } }),
    status: 403,
    body: {
      code: 'API_FORBIDDEN',
      message: 'This request is not allowed: it is night.',
      documentation: 'https://play.example.com/docs/errors#api-forbidden',
      metadata: { until: 7 },
    },
    retry_after: null,
  },
  with_falsy_metadata: {
    thrown: () => new ServiceError('API_NOT_FOUND', {}, { metadata: 0 }),
    status: 404,
    body: {
      code: 'API_NOT_FOUND',
      message: 'No route matches this path. Check its spelling, and that ids are UUIDs.',
      documentation: 'https://play.example.com/docs/errors#api-not-found',
      metadata: 0,
    },
    retry_after: null,
  },
  too_many: {
    thrown: () => new ServiceError('TOO_MANY_WATCHERS', {}, { retry_after_ms: 1_200 }),
    status: 429,
    body: {
      code: 'TOO_MANY_WATCHERS',
      message:
        'This caller, or all callers together, have too many requests that wait for a change. Close some, or try again.',
      documentation: 'https://play.example.com/docs/errors#too-many-watchers',
    },
    retry_after: '2',
  },
  unavailable: {
    thrown: () => new ServiceError('DATABASE_UNAVAILABLE', {}, { cause: new Error(SECRET) }),
    status: 503,
    body: {
      code: 'DATABASE_UNAVAILABLE',
      message: 'The database is unavailable. Try again.',
      documentation: 'https://play.example.com/docs/errors#database-unavailable',
    },
    retry_after: '1',
  },
};

const open = { summary: 'For a test.', allow: 'anyone' } as const;
const ROUTES = [
  ...Object.entries(UNEXPECTED).map(([name, make]) =>
    route('GET', `/unexpected/${name}`, open, async () => {
      throw make();
    }),
  ),
  ...Object.entries(EXPECTED).map(([name, { thrown }]) =>
    route('GET', `/expected/${name}`, open, async () => {
      throw thrown();
    }),
  ),
  route('GET', '/answers/circle', open, async () => circle),
  route('GET', '/answers/redirect', open, async () => Response.redirect('https://example.com/', 302)),
  route('GET', '/answers/page', open, async () => new Response('<p>', { headers: { 'content-type': 'text/html' } })),
  route('GET', '/answers/value', open, async () => ({ value: 1 })),
];

let app: TestApp;
beforeAll(async () => {
  app = await openTestApp(ROUTES);
});
afterAll(() => app[Symbol.asyncDispose]());

/** Returns the ray id of an answer; its header and its body must agree. */
function rayOf({ headers, body }: Answer): string {
  const ray_id = headers.get('rvt-ray-id') ?? '';
  expect(ray_id).toMatch(UUID);
  if (body.ray_id !== undefined) expect(body.ray_id).toBe(ray_id);
  return ray_id;
}

describe('an unexpected failure is answered with ERROR, and only the log has its details:', () => {
  test.each([...Object.keys(UNEXPECTED).map((name) => `/unexpected/${name}`), '/answers/circle'])(
    '%s',
    async (path) => {
      const answer = await app.api.get(path);
      const ray_id = rayOf(answer);
      expect(answer.status).toBe(500);
      expect(answer.body).toEqual({
        code: 'ERROR',
        message: "The service failed to handle the request. Give the ray id of this answer to the service's operator.",
        ray_id,
        documentation: 'https://play.example.com/docs/errors#error',
      });
      const logged = app.events.filter((event) => 'ray_id' in event && event.ray_id === ray_id);
      expect(logged.map(({ event }) => event)).toEqual(['request_failed', 'request_served']);
      expect(logged).toMatchObject([
        { method: 'GET', route: path },
        { method: 'GET', route: path, status: 500 },
      ]);
    },
  );

  test('the log has the cause as it was thrown', async () => {
    const ray_id = rayOf(await app.api.get('/unexpected/error'));
    const failed = app.events.find((event) => event.event === 'request_failed' && event.ray_id === ray_id);
    expect(failed).toMatchObject({ cause: new Error(SECRET) });
  });
});

describe('a ServiceError is answered as the catalogue defines it:', () => {
  test.each(Object.entries(EXPECTED))('%s', async (name, { status, body, retry_after }) => {
    const answer = await app.api.get(`/expected/${name}`);
    const ray_id = rayOf(answer);
    expect(answer.status).toBe(status);
    expect(answer.body).toEqual({ ...body, ray_id });
    expect(answer.headers.get('retry-after')).toBe(retry_after);
    expect(answer.headers.get('content-type')).toStartWith('application/json');
  });

  test('is logged only if it has a cause', async () => {
    const silent = rayOf(await app.api.get('/expected/plain'));
    const logged = rayOf(await app.api.get('/expected/unavailable'));
    const failed = app.events.flatMap((event) => (event.event === 'request_failed' ? [event.ray_id] : []));
    expect(failed).toContain(logged);
    expect(failed).not.toContain(silent);
  });
});

describe('every answer', () => {
  const PATHS: [path: string, status: number][] = [
    ['/answers/value', 200],
    ['/answers/page', 200],
    ['/answers/redirect', 302],
    ['/answers/circle', 500],
    ['/expected/plain', 400],
    ['/nothing', 404],
  ];
  test.each(PATHS)('%s has the common headers and a ray id of its own', async (path, status) => {
    const send = () => fetch(`${app.api.base_url}${path}`, { redirect: 'manual' });
    const [one, other] = await Promise.all([send(), send()]);
    for (const { status: answered_status, headers } of [one, other]) {
      expect(answered_status).toBe(status);
      expect(headers.get('rvt-ray-id')).toMatch(UUID);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('x-frame-options')).toBe('DENY');
    }
    expect(one.headers.get('rvt-ray-id')).not.toBe(other.headers.get('rvt-ray-id'));
  });
});
