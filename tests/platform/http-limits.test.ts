import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { createRateLimiter } from '../../src/platform/http/rate-limits.ts';
import { type Route, route } from '../../src/platform/http/route.ts';
import { inEachMinute } from '../../src/platform/limits/limit.ts';
import { openLimits } from '../../src/platform/limits/limits.ts';
import type { Caller } from '../../src/platform/tokens/caller.ts';
import type { Answer } from '../support/api.ts';
import { makeCaller } from '../support/callers.ts';
import { openTestApp, type TestApp } from '../support/http-app.ts';

const BEGIN = Date.UTC(2030, 0, 1);
const THREE = inEachMinute('three', 3);
const summary = 'For a test.';
const ok = async () => ({});
const PLAYERS = ['public', 'development'] as const;
const ROUTES: Route[] = [
  route('GET', '/matchmaker/open', { summary, allow: 'anyone', limit: THREE }, ok),
  route('POST', '/matchmaker/find', { summary, allow: PLAYERS, limit: THREE }, ok),
  route('POST', '/matchmaker/join', { summary, allow: PLAYERS, limit: THREE }, ok),
  route('POST', '/own', { summary, allow: ['lobby', 'identity', 'service'], limit: inEachMinute('own', 3) }, ok),
  route('POST', '/guess', { summary, allow: ['identity'], limit: inEachMinute('guess', 3, { by: 'address' }) }, ok),
  ...(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const).map((method) =>
    route(method, '/usual', { summary, allow: 'anyone' }, ok),
  ),
];

let now: number;
let app: TestApp;

async function open(trusted_proxies?: string, is_on = true, scale = 1): Promise<void> {
  now = BEGIN;
  const clock = { now: () => new Date(now) };
  const limits = await openLimits({ clock, events: { emit() {} }, is_on, scale, store: undefined, epoch: '' });
  app = await openTestApp(ROUTES, { limits, ...(trusted_proxies === undefined ? {} : { trusted_proxies }) });
}
beforeEach(() => open('127.0.0.1'));
afterEach(() => app[Symbol.asyncDispose]());

interface Sender {
  address?: string;
  token?: string;
}

async function send(path: string, { address = '203.0.113.9', token }: Sender = {}, method = 'POST'): Promise<Answer> {
  return await app.api.call(method, path, { token, headers: { 'x-forwarded-for': address } });
}

/** Returns the statuses of sequential requests. */
async function statusesOf(count: number, path: string, from: Sender = {}, method = 'POST'): Promise<number[]> {
  const statuses: number[] = [];
  for (let number = 0; number < count; number += 1) statuses.push((await send(path, from, method)).status);
  return statuses;
}

const issue = (caller: Caller) => app.tokens.issue(caller);
const OPEN = '/matchmaker/open';
const TOO_MANY = [200, 200, 200, 429];

describe('a caller over its limit', () => {
  test('gets a 429 that says when to try again', async () => {
    now = BEGIN + 12_345;
    await statusesOf(3, OPEN, {}, 'GET');
    const { status, body, headers } = await send(OPEN, {}, 'GET');
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

  test('may try again when the window ends, and not a millisecond earlier', async () => {
    expect(await statusesOf(4, OPEN, {}, 'GET')).toEqual(TOO_MANY);
    now = BEGIN + 59_999;
    const { status, headers } = await send(OPEN, {}, 'GET');
    expect({ status, retry_after: headers.get('retry-after') }).toEqual({ status: 429, retry_after: '1' });
    now = BEGIN + 60_000;
    expect(await statusesOf(4, OPEN, {}, 'GET')).toEqual(TOO_MANY);
  });

  test('does not have its body read', async () => {
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

test('rate limits: every answer has the remaining requests in its headers, readable by pages too', async () => {
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

describe('a caller is counted', () => {
  test('by address without a token', async () => {
    expect(await statusesOf(4, OPEN, {}, 'GET')).toEqual(TOO_MANY);
    expect(await statusesOf(4, OPEN, { address: '203.0.113.8' }, 'GET')).toEqual(TOO_MANY);
  });

  test('by the /64 of an IPv6 address, and by IPv4 if an IPv6 address contains one', async () => {
    const from = async (address: string) => (await send(OPEN, { address }, 'GET')).status;
    for (const last of ['1', '2', 'ffff:1:1']) expect(await from(`2001:db8:0:1::${last}`)).toBe(200);
    expect(await from('2001:db8:0:1:1:2:3:4')).toBe(429);
    expect(await from('2001:db8:0:2::1')).toBe(200);
    for (const address of ['203.0.113.9', '::ffff:203.0.113.9', '203.0.113.9']) expect(await from(address)).toBe(200);
    expect(await from('::ffff:cb00:7109')).toBe(429);
  });

  test("by namespace and address with a public token, so games do not use up each other's limits", async () => {
    const [one, other] = [await issue(makeCaller('public')), await issue(makeCaller('public'))];
    expect(await statusesOf(4, '/matchmaker/find', { token: one })).toEqual(TOO_MANY);
    expect(await statusesOf(4, '/matchmaker/find', { token: other })).toEqual(TOO_MANY);
    expect(await statusesOf(4, '/matchmaker/find', { token: one, address: '203.0.113.8' })).toEqual(TOO_MANY);
  });

  test('once for all routes that share a limit', async () => {
    const token = await issue(makeCaller('public'));
    expect(await statusesOf(2, '/matchmaker/find', { token })).toEqual([200, 200]);
    expect(await statusesOf(2, '/matchmaker/join', { token })).toEqual([200, 429]);
    expect(await statusesOf(1, '/matchmaker/find', { token })).toEqual([429]);
  });

  test.each(['lobby', 'identity', 'service'] as const)('by itself with a token of a single %s', async (kind) => {
    const [one, other] = [makeCaller(kind), makeCaller(kind)];
    const tokens = [await issue(one), await issue(one)];
    const from = [tokens[0] ?? '', tokens[1] ?? ''].map((token, index) => ({ token, address: `203.0.113.${index}` }));
    const statuses = [];
    for (let number = 0; number < 4; number += 1) statuses.push((await send('/own', from[number % 2])).status);
    expect(statuses).toEqual(TOO_MANY);
    expect(await statusesOf(4, '/own', { token: await issue(other) })).toEqual(TOO_MANY);
  });

  test('by address, whatever its token, where secrets could be guessed', async () => {
    const statuses = [];
    for (let number = 0; number < 4; number += 1) {
      statuses.push((await send('/guess', { token: await issue(makeCaller('identity')) })).status);
    }
    expect(statuses).toEqual(TOO_MANY);
  });

  test('for each route on its own by default: its limits are for a quarter of an hour', async () => {
    const limits: Record<string, string | null> = {};
    for (const method of ['GET', 'PATCH', 'POST', 'PUT', 'DELETE']) {
      const { headers } = await send('/usual', {}, method);
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

describe('a request with an invalid token', () => {
  test('is counted by address and refused in the end; valid tokens from that address still work', async () => {
    const statuses = await statusesOf(1_201, '/matchmaker/find', { token: 'nonsense' });
    expect(new Set(statuses.slice(0, 1_200))).toEqual(new Set([401]));
    expect(statuses.at(-1)).toBe(429);
    expect((await send('/matchmaker/find')).body.code).toBe('API_RATE_LIMIT');
    expect((await send('/matchmaker/find', { address: '203.0.113.8' })).body.code).toBe('API_UNAUTHORIZED');
    expect(await statusesOf(4, '/matchmaker/find', { token: await issue(makeCaller('public')) })).toEqual(TOO_MANY);
  });
});

describe('an address with a flood of invalid tokens', () => {
  // As many verifications as invalid tokens below.
  beforeEach(async () => {
    await app[Symbol.asyncDispose]();
    await open('127.0.0.1', true, 1 / 1_000);
  });

  test('has no more of them verified; valid tokens that were used lately still work', async () => {
    const [known, fresh] = [await issue(makeCaller('identity')), await issue(makeCaller('identity'))];
    expect((await send('/own', { token: known })).status).toBe(200);
    expect(new Set(await statusesOf(12, '/own', { token: 'nonsense' }))).toEqual(new Set([401, 429]));
    const { status, body } = await send('/own', { token: fresh });
    expect([status, body.metadata?.limit]).toEqual([429, 12]);
    // Refused by the limit of the route, which counts the caller.
    expect((await send('/own', { token: known })).body.metadata?.limit).toBeLessThan(1);
    expect((await send('/own', { token: fresh, address: '203.0.113.8' })).status).toBe(200);
  });
});

describe('without a trusted proxy', () => {
  beforeEach(async () => {
    await app[Symbol.asyncDispose]();
    await open();
  });

  test('X-Forwarded-For does not change who is counted', async () => {
    const statuses = [];
    for (let number = 0; number < 6; number += 1) {
      statuses.push((await send(OPEN, { address: `203.0.113.${number}` }, 'GET')).status);
    }
    expect(statuses).toEqual([...TOO_MANY, 429, 429]);
  });

  test('the log suspects an untrusted proxy once, after a caller with X-Forwarded-For was refused', async () => {
    const warnings = () => app.events.filter(({ event }) => event === 'proxy_not_trusted');
    await statusesOf(3, OPEN, {}, 'GET');
    await app.api.get(OPEN);
    expect(warnings()).toEqual([]);
    await statusesOf(3, OPEN, {}, 'GET');
    expect(warnings()).toEqual([{ event: 'proxy_not_trusted', address: '127.0.0.1' }]);
  });
});

test('a trusted proxy is not reported as untrusted', async () => {
  expect(await statusesOf(5, OPEN, {}, 'GET')).toEqual([...TOO_MANY, 429]);
  expect(app.events.map(({ event }) => event)).not.toContain('proxy_not_trusted');
});

test('without limits nothing is counted, and answers have no rate-limit headers', async () => {
  await app[Symbol.asyncDispose]();
  await open(undefined, false);
  expect(new Set(await statusesOf(50, OPEN, {}, 'GET'))).toEqual(new Set([200]));
  const { headers } = await send(OPEN, {}, 'GET');
  expect([...headers.keys()].filter((name) => name.startsWith('ratelimit'))).toEqual([]);
});

test('verifications of tokens are counted for an address, but not for programs of this machine, which share theirs', async () => {
  using limits = await openLimits({
    clock: { now: () => new Date(BEGIN) },
    events: { emit() {} },
    is_on: true,
    scale: 1 / 12_000,
    store: undefined,
    epoch: '',
  });
  const events = { emit() {} };
  const limiter = createRateLimiter({ host: '10.0.0.7', limits, events, onRefused() {} });
  const refused = async (address: string, is_of_untrusted_proxy = false) => {
    const client = { address, is_of_untrusted_proxy };
    for (const _ of [1, 2]) {
      const verdict = await (async () => limiter.countVerification(client))().catch((error: unknown) => error);
      if (verdict !== undefined) return true;
    }
    return false;
  };
  expect(await refused('203.0.113.9')).toBe(true);
  for (const address of ['127.0.0.1', '::1', '10.0.0.7']) expect(await refused(address)).toBe(false);
  expect(await refused('127.0.0.1', true)).toBe(true);
});
