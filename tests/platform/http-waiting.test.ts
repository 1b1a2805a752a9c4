import { afterEach, describe, expect, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { ServiceError } from '../../src/platform/errors.ts';
import { serverLimits } from '../../src/platform/http/listen.ts';
import { type Call, type Route, route } from '../../src/platform/http/route.ts';
import { type Patience, TimeLimits } from '../../src/platform/http/time-limits.ts';
import { openTestApp, type TestApp } from '../support/http-app.ts';
import { sendRaw } from '../support/raw-http.ts';
import { rejectionOf } from '../support/refusal.ts';
import { openTestService } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';

const WAITERS_PER_CALLER_MAX = 128;
const anybody = { summary: 'For a test.', allow: 'anyone' } as const;

/** A request that waits in its handler, as a long poll does. */
interface Waiting {
  signal: AbortSignal;
  answer(value: unknown): void;
  fail(error: Error): void;
}

/** A route that waits until the test, or its signal, ends the wait. */
function makeWaitingRoute(options: Partial<Parameters<typeof route>[2]> = {}): { waiting: Waiting[]; route: Route } {
  const waiting: Waiting[] = [];
  const wait = async ({ patience: { signal } }: Pick<Call<unknown, unknown, unknown, unknown>, 'patience'>) => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    waiting.push({ signal, answer: resolve, fail: reject });
    return await promise;
  };
  return { waiting, route: route('POST', '/wait', { ...anybody, ...options }, wait) };
}

let app: TestApp | undefined;
afterEach(async () => {
  await app?.[Symbol.asyncDispose]();
});

test.each([
  { request_timeout_ms: 1_000, idle_s: 75 },
  { request_timeout_ms: 50_000, idle_s: 75 },
  { request_timeout_ms: 90_500, idle_s: 96 },
  { request_timeout_ms: 240_000, idle_s: 245 },
])(
  'a connection is kept for longer than proxies keep theirs, and than a request of $request_timeout_ms ms may wait',
  ({ request_timeout_ms, idle_s }) => {
    expect(serverLimits(request_timeout_ms).idleTimeout).toBe(idle_s);
  },
);

describe('a request whose time is over', () => {
  test('is answered with 503 and when to try again; its handler is told to stop', async () => {
    const { waiting, route: waits } = makeWaitingRoute();
    app = await openTestApp([waits], { request_timeout_ms: 50 });
    const { status, body, headers } = await app.api.post('/wait', undefined);
    expect(status).toBe(503);
    expect(body).toMatchObject({
      code: 'API_REQUEST_TIMEOUT',
      message: 'The request was not answered within 50 ms. Try again.',
    });
    expect(headers.get('retry-after')).toBe('1');
    expect(waiting.map(({ signal }) => signal.aborted)).toEqual([true]);
  });

  test('gets one answer, however its handler ends afterwards', async () => {
    const { waiting, route: waits } = makeWaitingRoute();
    app = await openTestApp([waits], { request_timeout_ms: 20 });
    await Promise.all([app.api.post('/wait', undefined), app.api.post('/wait', undefined)]);
    waiting[0]?.fail(new Error('too late'));
    waiting[1]?.answer({ value: 'too late' });
    expect((await app.api.post('/wait', undefined)).status).toBe(503);
    const served = app.events.flatMap((event) => (event.event === 'request_served' ? [event.status] : []));
    expect(served).toEqual([503, 503, 503]);
    expect(app.events.map(({ event }) => event)).not.toContain('request_failed');
  });

  test.each(['answers', 'fails'] as const)(
    'request deadline: a request that %s in time is not ended later',
    async (how) => {
      const limits = new TimeLimits(20, new AbortController().signal);
      const request = () => new Request('http://muster/');
      let early: Patience | undefined;
      const running = limits.run(request(), async (patience) => {
        early = patience;
        if (how === 'fails') throw new Error('it fails');
        return how;
      });
      expect(await running.catch(({ message }: Error) => message)).toBe(how === 'fails' ? 'it fails' : how);
      // A request that began later is over: the deadline of the first one has passed too.
      await rejectionOf(
        ServiceError,
        limits.run(request(), () => new Promise(() => {})),
      );
      expect(early?.signal.aborted).toBe(false);
    },
  );

  test('is answered too when it is its body that does not come', async () => {
    const takes = route('POST', '/take', { ...anybody, body: Type.Object({}) }, async () => ({}));
    app = await openTestApp([takes], { request_timeout_ms: 50 });
    const head = 'POST /take HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{';
    const { status, body } = await sendRaw(app.api.base_url, head);
    expect([status, body.code]).toEqual([400, 'API_BODY_TIMEOUT']);
  });

  test('but not when it sends a file, which takes as long as it takes', async () => {
    const { waiting, route: takes } = makeWaitingRoute({ body_kind: 'stream' });
    const { route: waits } = makeWaitingRoute();
    app = await openTestApp([takes, { ...waits, path: '/timed', operation: 'waitTimed' }], { request_timeout_ms: 30 });
    const sent = app.api.post('/wait', undefined);
    await waitFor(() => waiting.length === 1, 'the file to be taken');
    // Begun later, it is over: so would the other be, if it had an end.
    expect((await app.api.post('/timed', undefined)).status).toBe(503);
    expect(waiting.map(({ signal }) => signal.aborted)).toEqual([false]);
    waiting[0]?.answer({ value: 1 });
    expect(await sent).toMatchObject({ status: 200, body: { value: 1 } });
  });
});

describe('when the service stops', () => {
  test('waiters are answered with the current state', async () => {
    const { waiting, route: waits } = makeWaitingRoute();
    app = await openTestApp([waits]);
    const held = [app.api.post('/wait', undefined), app.api.post('/wait', undefined)];
    await waitFor(() => waiting.length === 2, 'both to wait');
    for (const { signal, answer } of waiting) signal.addEventListener('abort', () => answer({ value: 'as it is' }));
    app.announceStop();
    expect(await Promise.all(held)).toMatchObject([
      { status: 200, body: { value: 'as it is' } },
      { status: 200, body: { value: 'as it is' } },
    ]);
  });

  test('new requests are refused and may retry', async () => {
    const { waiting, route: waits } = makeWaitingRoute();
    app = await openTestApp([waits]);
    app.announceStop();
    const { status, body, headers } = await app.api.post('/wait', undefined);
    expect([status, body.code, headers.get('retry-after')]).toEqual([503, 'SERVICE_STOPPING', '1']);
    expect(waiting).toEqual([]);
  });

  test('health: a stopping service still says whether it lives', async () => {
    const live = route('GET', '/health/live', anybody, async () => ({ value: 'alive' }));
    app = await openTestApp([live]);
    app.announceStop();
    expect(await app.api.get('/health/live')).toMatchObject({ status: 200, body: { value: 'alive' } });
  });
});

test('a stopping service answers all long polls, and then no request', async () => {
  const muster = await openTestService();
  const { api, administrator_token: token } = muster;
  const { watch } = await api.ok('GET', '/cloud/games', { token });
  const polls = Array.from({ length: WAITERS_PER_CALLER_MAX + 1 }, () =>
    api.get(`/cloud/games?watch_index=${watch.index}`, token),
  );
  // One is too many: when it is refused, all others are held.
  expect((await Promise.race(polls)).body.code).toBe('TOO_MANY_WATCHERS');
  await muster[Symbol.asyncDispose]();
  const held = (await Promise.all(polls)).filter(({ status }) => status !== 429);
  expect(held).toHaveLength(WAITERS_PER_CALLER_MAX);
  for (const { status, body } of held) expect([status, body.watch]).toEqual([200, watch]);
  expect((await rejectionOf(Error, api.get('/health/live'))).message).toContain('Unable to connect');
});

test('a client that has gone ends its wait', async () => {
  const { waiting, route: waits } = makeWaitingRoute();
  app = await openTestApp([waits]);
  const leaving = new AbortController();
  const gone = app.api.call('POST', '/wait', { signal: leaving.signal }).catch((error: Error) => error.name);
  const [held] = await waitFor(() => waiting.length === 1 && waiting, 'the wait');
  leaving.abort();
  expect(await gone).toBe('AbortError');
  await waitFor(() => held?.signal.aborted, 'the handler to be told');
  held?.answer({});
});
