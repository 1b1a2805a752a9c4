import { afterEach, describe, expect, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import type { ServiceError } from '../../src/platform/errors.ts';
import type { Call } from '../../src/platform/http/call.ts';
import { serverLimits } from '../../src/platform/http/ports/listen.ts';
import { createDeadlineOptions, Deadline } from '../../src/platform/http/request-deadline.ts';
import { type Route, route } from '../../src/platform/http/route.ts';
import { openTestApp, type TestApp } from '../support/http-app.ts';
import { sendRaw } from '../support/network/raw-http.ts';
import { rejectionOf } from '../support/refusal.ts';
import { openTestService } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';

const WAITERS_PER_CALLER_MAX = 128;
const open = { summary: 'For a test.', allow: 'anyone' } as const;

/** A request that waits in its handler, like a long poll. */
interface Waiting {
  signal: AbortSignal;
  answer(value: unknown): void;
  fail(error: Error): void;
}

/** Returns a route that waits until the test or its signal ends the wait. */
function makeWaitingRoute(options: Partial<Parameters<typeof route>[2]> = {}): { waiting: Waiting[]; route: Route } {
  const waiting: Waiting[] = [];
  const wait = async ({ deadline: { signal } }: Pick<Call<unknown, unknown, unknown, unknown>, 'deadline'>) => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    waiting.push({ signal, answer: resolve, fail: reject });
    return await promise;
  };
  return { waiting, route: route('POST', '/wait', { ...open, ...options }, wait) };
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
  'connections: the idle timeout is longer than that of common proxies and than a request timeout of $request_timeout_ms ms',
  ({ request_timeout_ms, idle_s }) => {
    expect(serverLimits(request_timeout_ms).idleTimeout).toBe(idle_s);
  },
);

describe('a request over its deadline', () => {
  test('is answered with 503 and Retry-After, and its handler is aborted', async () => {
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
    'request deadline: a request that %s in time is not aborted later',
    async (how) => {
      const { waiting, route: waits } = makeWaitingRoute();
      app = await openTestApp([waits], { request_timeout_ms: 1_000 });
      const early = app.api.post('/wait', undefined);
      await waitFor(() => waiting.length === 1, 'the request to wait');
      if (how === 'answers') waiting[0]?.answer({});
      else waiting[0]?.fail(new Error('it fails'));
      expect((await early).status).toBe(how === 'answers' ? 200 : 500);
      // This request began later. When it is over, the deadline of the first one has passed too.
      expect((await app.api.post('/wait', undefined)).status).toBe(503);
      expect(waiting.map(({ signal }) => signal.aborted)).toEqual([false, true]);
    },
  );

  test('is answered as well if it waits for its own body', async () => {
    const takes = route('POST', '/take', { ...open, body: Type.Object({}) }, async () => ({}));
    app = await openTestApp([takes], { request_timeout_ms: 50 });
    const head = 'POST /take HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{';
    const { status, body } = await sendRaw(app.api.base_url, head);
    expect([status, body.code]).toEqual([400, 'API_BODY_TIMEOUT']);
  });

  test('is answered as one whose body is late, also if its time is over when the wait for the body begins', async () => {
    const takes = route('POST', '/take', { ...open, body: Type.Object({}) }, async () => ({}));
    const request_timeout_ms = 50;
    // Takes the processor for longer than the request may last. The body is awaited before a timer can end the request.
    const count = () => {
      Bun.sleepSync(2 * request_timeout_ms);
      return undefined;
    };
    app = await openTestApp([takes], { request_timeout_ms, limits: { count, [Symbol.dispose]() {} } });
    const head = 'POST /take HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{';
    const { status, body } = await sendRaw(app.api.base_url, head);
    expect([status, body.code]).toEqual([400, 'API_BODY_TIMEOUT']);
  });

  test('fails as soon as its body has arrived, if its time was over meanwhile', () => {
    const options = createDeadlineOptions(10_000, new AbortController().signal);
    const failures: string[] = [];
    const fail = ({ code }: ServiceError) => void failures.push(code);
    const deadline = new Deadline({ request: new Request('http://here/'), fail }, options);
    deadline.start();
    deadline.hold();
    options.timeouts.expireAll();
    expect([failures, deadline.is_over]).toEqual([[], false]);
    deadline.release();
    expect([failures, deadline.is_over]).toEqual([['API_REQUEST_TIMEOUT'], true]);
  });

  test('is over before its answer: the body of that is cancelled', async () => {
    const { waiting, route: waits } = makeWaitingRoute();
    app = await openTestApp([waits], { request_timeout_ms: 30 });
    expect((await app.api.post('/wait', undefined)).status).toBe(503);
    let is_cancelled = false;
    const cancel = () => {
      is_cancelled = true;
    };
    waiting[0]?.answer(new Response(new ReadableStream({ cancel })));
    await waitFor(() => is_cancelled, 'the body to be cancelled');
  });

  test('is not aborted while it sends a file', async () => {
    const { waiting, route: takes } = makeWaitingRoute({ body_kind: 'stream' });
    const { route: waits } = makeWaitingRoute();
    app = await openTestApp([takes, { ...waits, path: '/timed', operation: 'waitTimed' }], { request_timeout_ms: 30 });
    const sent = app.api.post('/wait', undefined);
    await waitFor(() => waiting.length === 1, 'the file to arrive');
    // It began later and is over. The upload would be over too if it had a deadline.
    expect((await app.api.post('/timed', undefined)).status).toBe(503);
    expect(waiting.map(({ signal }) => signal.aborted)).toEqual([false]);
    waiting[0]?.answer({ value: 1 });
    expect(await sent).toMatchObject({ status: 200, body: { value: 1 } });
  });
});

describe('when the service stops', () => {
  test('long polls are answered with the current state', async () => {
    const { waiting, route: waits } = makeWaitingRoute();
    app = await openTestApp([waits]);
    const held = [app.api.post('/wait', undefined), app.api.post('/wait', undefined)];
    await waitFor(() => waiting.length === 2, 'both requests to wait');
    for (const { signal, answer } of waiting) signal.addEventListener('abort', () => answer({ value: 'as it is' }));
    app.announceStop();
    expect(await Promise.all(held)).toMatchObject([
      { status: 200, body: { value: 'as it is' } },
      { status: 200, body: { value: 'as it is' } },
    ]);
  });

  test('new requests are refused with a retry time', async () => {
    const { waiting, route: waits } = makeWaitingRoute();
    app = await openTestApp([waits]);
    app.announceStop();
    const { status, body, headers } = await app.api.post('/wait', undefined);
    expect([status, body.code, headers.get('retry-after')]).toEqual([503, 'SERVICE_STOPPING', '1']);
    expect(waiting).toEqual([]);
  });

  test('health: a stopping service still answers /health/live', async () => {
    const live = route('GET', '/health/live', open, async () => ({ value: 'alive' }));
    app = await openTestApp([live]);
    app.announceStop();
    expect(await app.api.get('/health/live')).toMatchObject({ status: 200, body: { value: 'alive' } });
  });
});

test('a stopping service answers all long polls before it closes its port', async () => {
  const muster = await openTestService();
  const { api, administrator_token: token } = muster;
  const { watch } = await api.ok('GET', '/cloud/games', { token });
  const polls = Array.from({ length: WAITERS_PER_CALLER_MAX + 1 }, () =>
    api.get(`/cloud/games?watch_index=${watch.index}`, token),
  );
  // One poll exceeds the limit: once it is refused, all others are waiting.
  expect((await Promise.race(polls)).body.code).toBe('TOO_MANY_WATCHERS');
  await muster[Symbol.asyncDispose]();
  const held = (await Promise.all(polls)).filter(({ status }) => status !== 429);
  expect(held).toHaveLength(WAITERS_PER_CALLER_MAX);
  for (const { status, body } of held) expect([status, body.watch]).toEqual([200, watch]);
  expect((await rejectionOf(Error, api.get('/health/live'))).message).toContain('Unable to connect');
});

test('a client that disconnects ends its wait', async () => {
  const { waiting, route: waits } = makeWaitingRoute();
  app = await openTestApp([waits]);
  const leaving = new AbortController();
  const result = app.api.call('POST', '/wait', { signal: leaving.signal }).catch((error: Error) => error.name);
  const [held] = await waitFor(() => waiting.length === 1 && waiting, 'the request to wait');
  leaving.abort();
  expect(await result).toBe('AbortError');
  await waitFor(() => held?.signal.aborted, 'the handler to be aborted');
  held?.answer({});
});
