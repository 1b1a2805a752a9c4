import { afterAll, beforeAll, describe, expect, setSystemTime, test } from 'bun:test';
import type { DatabaseAddress } from '../../src/platform/database/database.ts';
import { openTestDatabase } from '../support/database/database.ts';
import { sendRaw } from '../support/network/raw-http.ts';
import { isError, openSocket } from '../support/watch/socket.ts';
import { openSocketApp } from '../support/watch/socket-app.ts';

let opened: AsyncDisposableStack;
let address: DatabaseAddress;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  ({ address } = opened.use(await openTestDatabase()));
  // The middle of a window, so that no window ends while a test runs.
  setSystemTime(Date.UTC(2030, 0, 1, 12, 0, 30));
}, 300_000);
afterAll(async () => {
  setSystemTime();
  await opened.disposeAsync();
});

const UPGRADES_MAX = 1_200;

describe('a subscription', () => {
  test('counts like its GET, together with it; over the limit, the error says when to try again', async () => {
    await using app = await openSocketApp(address, { limits_scale: 1 });
    const token = await app.issue();
    using socket = openSocket(app.url, { token });
    expect((await app.api.get('/matchmaker/rare/one', token)).status).toBe(200);
    await socket.subscribe('a', '/matchmaker/rare/one');
    await socket.subscribe('b', '/matchmaker/rare/two');
    socket.send({ type: 'subscribe', id: 'c', path: '/matchmaker/rare/three' });
    expect(await socket.next(isError)).toMatchObject({
      id: 'c',
      error: { code: 'API_RATE_LIMIT', metadata: { limit: 3, reset_ts: expect.any(Number) } },
      retry_after_ms: expect.any(Number),
    });
    expect((await app.api.get('/matchmaker/rare/one', token)).status).toBe(429);
    // The existing subscriptions continue.
    await app.increment('two');
    await socket.next(({ type, body }) => type === 'body' && body.number === 1);
  });

  test('over the limit is reported like its GET: the log suspects an untrusted proxy', async () => {
    await using app = await openSocketApp(address, { limits_scale: 1 });
    const headers = { authorization: `Bearer ${await app.issue()}`, 'x-forwarded-for': '203.0.113.9' };
    using socket = openSocket(app.url, { headers });
    for (const name of ['one', 'two', 'three']) await socket.subscribe(name, `/matchmaker/rare/${name}`);
    expect(app.events.map(({ event }) => event)).not.toContain('proxy_not_trusted');
    socket.send({ type: 'subscribe', id: 'four', path: '/matchmaker/rare/four' });
    expect((await socket.next(isError)).error.code).toBe('API_RATE_LIMIT');
    expect(app.events).toContainEqual({ event: 'proxy_not_trusted', address: '127.0.0.1' });
  });

  test('of one caller does not count for another', async () => {
    await using app = await openSocketApp(address, { limits_scale: 1 });
    for (const token of [await app.issue(), await app.issue()]) {
      using socket = openSocket(app.url, { token });
      for (const name of ['one', 'two', 'three']) await socket.subscribe(name, `/matchmaker/rare/${name}`);
    }
  });
});

describe('a client that resumes with an index', () => {
  test('is not limited, neither over a socket nor by polls, however often the state changes', async () => {
    await using app = await openSocketApp(address, { limits_scale: 1 });
    const token = await app.issue();
    let { index } = (await app.api.ok('GET', '/matchmaker/rare/four', { token })).watch;
    for (let number = 1; number <= 20; number += 1) {
      const poll = app.api.ok('GET', `/matchmaker/rare/four?watch_index=${index}`, { token });
      await app.increment('four');
      const answered = await poll;
      expect(answered.number).toBe(number);
      ({ index } = answered.watch);
    }
    for (let number = 0; number < 5; number += 1) {
      using socket = openSocket(app.url, { token });
      await socket.subscribe('again', '/matchmaker/rare/four', index);
    }
  });

  test('that is invalid counts like a first request', async () => {
    await using app = await openSocketApp(address, { limits_scale: 1 });
    const token = await app.issue();
    const statuses: number[] = [];
    for (const index of ['', 'x', '1', '00000000.1']) {
      statuses.push((await app.api.get(`/matchmaker/rare/five?watch_index=${index}`, token)).status);
    }
    expect(statuses).toEqual([200, 200, 200, 429]);
  });
});

test('an invalid token counts by address, however it comes; valid ones still work', async () => {
  // Three upgrades and three refused tokens.
  await using app = await openSocketApp(address, { limits_scale: 3 / UPGRADES_MAX });
  const send = (token: string) => {
    const socket = openSocket(app.url);
    // A socket's first invalid token is the last one that is verified and counted.
    for (let frame = 0; frame < 3; frame += 1) socket.send({ type: 'authenticate', token });
    return socket;
  };
  using first = send('nonsense');
  expect(await first.closed).toEqual({ code: 4401, reason: 'TOKEN_INVALID' });
  for (const status of [401, 401, 429])
    expect((await app.api.get('/matchmaker/numbers/a', 'none')).status).toBe(status);
  using second = send('nonsense');
  expect(await second.closed).toEqual({ code: 4429, reason: 'API_RATE_LIMIT' });
  using third = send(await app.issue());
  expect((await third.next()).type).toBe('ready');
});

test('an upgrade counts by address, whatever its token', async () => {
  await using app = await openSocketApp(address, { limits_scale: 1 });
  const head = [
    'GET /watch HTTP/1.1',
    'Host: muster',
    'Connection: Upgrade, close',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol: muster.watch.v1, bearer.nonsense',
  ];
  const ask = (number: number) =>
    sendRaw(app.url, [...head, `X-Forwarded-For: 203.0.113.${number % 256}`, '', ''].join('\r\n'));
  const codes = new Set<string>();
  for (let number = 0; number < UPGRADES_MAX; number += 1) codes.add((await ask(number)).body.code);
  expect([...codes]).toEqual(['TOKEN_INVALID']);
  const { status, body, headers } = await ask(0);
  expect({ status, code: body.code, retry_after: headers.get('retry-after') }).toEqual({
    status: 429,
    code: 'API_RATE_LIMIT',
    retry_after: '30',
  });
});
