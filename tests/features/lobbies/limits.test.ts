import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { makeGame, type TestGame } from '../../support/game.ts';
import { makeControlledGame } from '../../support/game-server.ts';
import { PROXY_SECRET } from '../../support/proxy-secret.ts';
import { shareService } from '../../support/suite.ts';

setDefaultTimeout(300_000);
const MINUTE_MS = 60_000;
const QUARTER_MS = 15 * MINUTE_MS;

const muster = shareService({
  MUSTER_LIMITS_SCALE: '1',
  MUSTER_TRUSTED_PROXIES: '127.0.0.1',
  MUSTER_PROXY_SECRET: PROXY_SECRET,
});
let game: TestGame;
beforeAll(async () => {
  game = await makeControlledGame(muster);
});

let hosts = 0;
/** Returns an address without earlier requests. */
const newAddress = () => `203.0.${100 + Math.floor(++hosts / 250)}.${1 + (hosts % 250)}`;

/** Advances the clock to the next window, unless at least half of this one is left. */
function enterWindow(window_ms: number): void {
  const into = muster.clock.now().getTime() % window_ms;
  if (into > window_ms / 2) muster.clock.advance(window_ms - into);
}

async function statusesOf(
  count: number,
  call: { method?: string; path: string; token?: string; address: string; body?: unknown },
): Promise<number[]> {
  const { method = 'POST', path, token = game.public_token, address, body } = call;
  const statuses: number[] = [];
  for (let number = 0; number < count; number += 1) {
    const headers = { 'x-forwarded-for': address, 'muster-proxy-secret': PROXY_SECRET };
    statuses.push((await muster.api.call(method, path, { token, headers, body })).status);
  }
  return statuses;
}

const times = (count: number, status: number) => Array.from({ length: count }, () => status);
const FIND = { path: '/matchmaker/lobbies/find', body: { game_modes: ['default'], prevent_auto_create_lobby: true } };
const JOIN = { path: '/v1/lobbies/join', body: { lobby_id: crypto.randomUUID() } };

describe('rate limits: the players of one address', () => {
  test('may find and join 16 times a minute together, at all paths of the matchmaker', async () => {
    enterWindow(MINUTE_MS);
    const address = newAddress();
    expect(await statusesOf(10, { ...FIND, address })).toEqual(times(10, 400));
    expect(await statusesOf(7, { ...JOIN, address })).toEqual([...times(6, 404), 429]);
    expect(await statusesOf(1, { ...FIND, path: '/v1/lobbies/find', address })).toEqual([429]);
    // Other addresses are not affected, nor is this one in another game.
    expect(await statusesOf(1, { ...FIND, address: newAddress() })).toEqual([400]);
    const other = await makeGame(muster.api, muster.administrator_token);
    expect(await statusesOf(1, { ...FIND, address, token: other.public_token })).not.toEqual([429]);
  });

  test('may create 45 lobbies in a quarter of an hour', async () => {
    enterWindow(QUARTER_MS);
    const address = newAddress();
    const create = { path: '/matchmaker/lobbies/create', body: { game_mode: 'chess' }, address };
    expect(await statusesOf(46, create)).toEqual([...times(45, 404), 429]);
  });

  test('may list lobbies every other second for half a minute, if there are 30 of them', async () => {
    enterWindow(MINUTE_MS);
    const address = newAddress();
    const list = { method: 'GET', path: '/matchmaker/lobbies/list', address };
    expect(new Set(await statusesOf(30 * 15, list))).toEqual(new Set([200]));
    const rest = ['/matchmaker/players/statistics', '/matchmaker/regions'];
    for (const path of rest) expect(await statusesOf(30, { method: 'GET', path, address })).toEqual(times(30, 200));
    // Their finds have a limit of their own.
    expect(await statusesOf(1, { ...FIND, address })).toEqual([400]);
  });
});

test('rate limits: health checks have none', async () => {
  const address = newAddress();
  const request = { method: 'GET', path: '/health/live', address };
  expect(new Set(await statusesOf(2_500, request))).toEqual(new Set([200]));
});

test('rate limits: looking up an invite counts by address, whatever the token', async () => {
  const request = { method: 'GET', path: '/group/invites/ABCDEFGH', token: muster.administrator_token };
  const statuses = await statusesOf(121, { ...request, address: '203.0.113.77' });
  expect(statuses.slice(0, 120)).toEqual(times(120, 400));
  expect(statuses.at(-1)).toBe(429);
  expect(await statusesOf(1, { ...request, address: '203.0.113.78' })).toEqual([400]);
});
