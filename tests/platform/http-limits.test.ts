import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { type Route, route } from '../../src/platform/http/route.ts';
import { inOneMinute } from '../../src/platform/limits/limit.ts';
import { openLimits } from '../../src/platform/limits/limits.ts';
import type { Caller } from '../../src/platform/tokens/caller.ts';
import type { Answer } from '../support/api.ts';
import { makeCaller } from '../support/callers.ts';
import { openTestApp, type TestApp } from '../support/http-app.ts';

const BEGIN = Date.UTC(2030, 0, 1);
const THREE = inOneMinute('three', 3);
const summary = 'For a test.';
const ok = async () => ({});
const PLAYERS = ['public', 'development'] as const;
const ROUTES: Route[] = [
  route('GET', '/matchmaker/open', { summary, allow: 'anyone', limit: THREE }, ok),
  route('POST', '/matchmaker/find', { summary, allow: PLAYERS, limit: THREE }, ok),
  route('POST', '/matchmaker/join', { summary, allow: PLAYERS, limit: THREE }, ok),
  route('POST', '/own', { summary, allow: ['lobby', 'identity', 'service'], limit: inOneMinute('own', 3) }, ok),
  route('POST', '/guess', { summary, allow: ['identity'], limit: inOneMinute('guess', 3, { by: 'address' }) }, ok),
  ...(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const).map((method) =>
    route(method, '/usual', { summary, allow: 'anyone' }, ok),
  ),
];

let now: number;
let app: TestApp;

async function open(trusted_proxies?: string, is_on = true): Promise<void> {
  now = BEGIN;
  const clock = { now: () => new Date(now) };
  const limits = await openLimits({ clock, events: { emit() {} }, is_on, scale: 1, store: undefined, epoch: '' });
  app = await openTestApp(ROUTES, { limits, ...(trusted_proxies === undefined ? {} : { trusted_proxies }) });
}
beforeEach(() => open('127.0.0.1'));
afterEach(() => app[Symbol.asyncDispose]());

interface From {
  address?: string;
  token?: string;
}

async function ask(path: string, { address = '203.0.113.9', token }: From = {}, method = 'POST'): Promise<Answer> {
  return await app.api.call(method, path, { token, headers: { 'x-forwarded-for': address } });
}

/** The statuses of so many requests, one after the other. */
async function statusesOf(count: number, path: string, from: From = {}, method = 'POST'): Promise<number[]> {
  const statuses: number[] = [];
  for (let number = 0; number < count; number += 1) statuses.push((await ask(path, from, method)).status);
  return statuses;
}

const issue = (caller: Caller) => app.tokens.issue(caller);
const OPEN = '/matchmaker/open';
const TOO_MANY = [200, 200, 200, 429];

describe('who has had enough', () => {
  test('is told so in the words of the catalogue, and when to come again', async () => {
    now = BEGIN + 12_345;
    await statusesOf(3, OPEN, {}, 'GET');
    const { status, body, headers } = await ask(OPEN, {}, 'GET');
    expect(status).toBe(429);
    expect(body).toEqual({
      code: 'API_RATE_LIMIT',
      message: 'The limit of 3 requests of this kind is exceeded. Try again in 48 s.',
      ray_id: expect.any(String),
      documentation: 'https://play.example.com/docs/errors#api-rate-limit',
      metadata: { reset_ts: BEGIN + 60_000, limit: 3 },
    });
    expect(headers.get('retry-after')).toBe('48');
  });

  test('may come again when the window is over, and not a millisecond earlier', async () => {
    expect(await statusesOf(4, OPEN, {}, 'GET')).toEqual(TOO_MANY);
    now = BEGIN + 59_999;
    const { status, headers } = await ask(OPEN, {}, 'GET');
    expect({ status, retry_after: headers.get('retry-after') }).toEqual({ status: 429, retry_after: '1' });
    now = BEGIN + 60_000;
    expect(await statusesOf(4, OPEN, {}, 'GET')).toEqual(TOO_MANY);
  });

  test('has his body not read, and nothing done', async () => {
    const token = await issue(makeCaller('public'));
    await statusesOf(3, '/matchmaker/find', { token });
    const { status } = await app.api.call('POST', '/matchmaker/find', {
      token,
      body: '{',
      headers: { 'x-forwarded-for': '203.0.113.9' },
    });
    expect(status).toBe(429);
  });
});

test('every answer says how many more there may be, to pages too', async () => {
  const seen: unknown[] = [];
  for (let number = 0; number < 4; number += 1) {
    const headers = { origin: 'https://game.example.com', 'x-forwarded-for': '203.0.113.9' };
    const answer = await app.api.call('GET', OPEN, { headers });
    seen.push(['limit', 'remaining', 'reset'].map((name) => answer.headers.get(`ratelimit-${name}`)));
    expect(answer.headers.get('access-control-expose-headers')).toContain('ratelimit-remaining');
    now += 10_001;
  }
  expect(seen).toEqual([
    ['3', '2', '60'],
    ['3', '1', '50'],
    ['3', '0', '40'],
    ['3', '0', '30'],
  ]);
});

describe('somebody is counted', () => {
  test('by his address where there is no token', async () => {
    expect(await statusesOf(4, OPEN, {}, 'GET')).toEqual(TOO_MANY);
    expect(await statusesOf(4, OPEN, { address: '203.0.113.8' }, 'GET')).toEqual(TOO_MANY);
  });

  test('by the /64 of his address of IPv6, and IPv4 written as IPv6 is IPv4', async () => {
    const from = async (address: string) => (await ask(OPEN, { address }, 'GET')).status;
    for (const last of ['1', '2', 'ffff:1:1']) expect(await from(`2001:db8:0:1::${last}`)).toBe(200);
    expect(await from('2001:db8:0:1:1:2:3:4')).toBe(429);
    expect(await from('2001:db8:0:2::1')).toBe(200);
    for (const address of ['203.0.113.9', '::ffff:203.0.113.9', '203.0.113.9']) expect(await from(address)).toBe(200);
    expect(await from('::ffff:cb00:7109')).toBe(429);
  });

  test('by namespace and address where all players share a token: no game takes another game its requests', async () => {
    const [one, other] = [await issue(makeCaller('public')), await issue(makeCaller('public'))];
    expect(await statusesOf(4, '/matchmaker/find', { token: one })).toEqual(TOO_MANY);
    expect(await statusesOf(4, '/matchmaker/find', { token: other })).toEqual(TOO_MANY);
    expect(await statusesOf(4, '/matchmaker/find', { token: one, address: '203.0.113.8' })).toEqual(TOO_MANY);
  });

  test('together where routes share a limit', async () => {
    const token = await issue(makeCaller('public'));
    expect(await statusesOf(2, '/matchmaker/find', { token })).toEqual([200, 200]);
    expect(await statusesOf(2, '/matchmaker/join', { token })).toEqual([200, 429]);
    expect(await statusesOf(1, '/matchmaker/find', { token })).toEqual([429]);
  });

  test.each(['lobby', 'identity', 'service'] as const)('by himself where a token is of one %s', async (kind) => {
    const [one, other] = [makeCaller(kind), makeCaller(kind)];
    const tokens = [await issue(one), await issue(one)];
    const from = [tokens[0] ?? '', tokens[1] ?? ''].map((token, index) => ({ token, address: `203.0.113.${index}` }));
    const statuses = [];
    for (let number = 0; number < 4; number += 1) statuses.push((await ask('/own', from[number % 2])).status);
    expect(statuses).toEqual(TOO_MANY);
    expect(await statusesOf(4, '/own', { token: await issue(other) })).toEqual(TOO_MANY);
  });

  test('by his address, whoever he says he is, where something can be guessed', async () => {
    const statuses = [];
    for (let number = 0; number < 4; number += 1) {
      statuses.push((await ask('/guess', { token: await issue(makeCaller('identity')) })).status);
    }
    expect(statuses).toEqual(TOO_MANY);
  });

  test('for each route by itself where it names no limit: so many in a quarter of an hour', async () => {
    const limits: Record<string, string | null> = {};
    for (const method of ['GET', 'PATCH', 'POST', 'PUT', 'DELETE']) {
      const { headers } = await ask('/usual', {}, method);
      expect(headers.get('ratelimit-reset')).toBe('900');
      limits[method] = `${headers.get('ratelimit-limit')}, ${headers.get('ratelimit-remaining')} left`;
    }
    expect(limits).toEqual({
      GET: '1920, 1919 left',
      PATCH: '480, 479 left',
      POST: '240, 239 left',
      PUT: '240, 239 left',
      DELETE: '240, 239 left',
    });
  });
});

describe('a request whose token is refused', () => {
  test('is counted by its address, and in the end told to stop; good ones from there go on', async () => {
    const statuses = await statusesOf(1_201, '/matchmaker/find', { token: 'nonsense' });
    expect(new Set(statuses.slice(0, 1_200))).toEqual(new Set([401]));
    expect(statuses.at(-1)).toBe(429);
    expect((await ask('/matchmaker/find')).body.code).toBe('API_RATE_LIMIT');
    expect((await ask('/matchmaker/find', { address: '203.0.113.8' })).body.code).toBe('API_UNAUTHORIZED');
    expect(await statusesOf(4, '/matchmaker/find', { token: await issue(makeCaller('public')) })).toEqual(TOO_MANY);
  });
});

describe('where no proxy is trusted', () => {
  beforeEach(async () => {
    await app[Symbol.asyncDispose]();
    await open();
  });

  test('a header that says another address each time moves nothing', async () => {
    const statuses = [];
    for (let number = 0; number < 6; number += 1) {
      statuses.push((await ask(OPEN, { address: `203.0.113.${number}` }, 'GET')).status);
    }
    expect(statuses).toEqual([...TOO_MANY, 429, 429]);
  });

  test('operators are told once that there seems to be one, when somebody is refused for it', async () => {
    const told = () => app.events.filter(({ event }) => event === 'proxy_not_trusted');
    await statusesOf(3, OPEN, {}, 'GET');
    await app.api.get(OPEN);
    expect(told()).toEqual([]);
    await statusesOf(3, OPEN, {}, 'GET');
    expect(told()).toEqual([{ event: 'proxy_not_trusted', address: '127.0.0.1' }]);
  });
});

test('a proxy that is trusted is not told of', async () => {
  expect(await statusesOf(5, OPEN, {}, 'GET')).toEqual([...TOO_MANY, 429]);
  expect(app.events.map(({ event }) => event)).not.toContain('proxy_not_trusted');
});

test('without limits nobody is counted, and no answer says anything of it', async () => {
  await app[Symbol.asyncDispose]();
  await open(undefined, false);
  expect(new Set(await statusesOf(50, OPEN, {}, 'GET'))).toEqual(new Set([200]));
  const { headers } = await ask(OPEN, {}, 'GET');
  expect([...headers.keys()].filter((name) => name.startsWith('ratelimit'))).toEqual([]);
});
