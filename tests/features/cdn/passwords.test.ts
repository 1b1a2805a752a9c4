import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { IS_FULL_LENGTH } from '../../support/full-length.ts';
import { PROXY_SECRET } from '../../support/proxy-secret.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { credentials, makeShownSite, protectSite, type ShownSite } from '../../support/site-visits.ts';
import { waitFor } from '../../support/wait.ts';

const ATTACKER = '198.51.100.1';
const PLAYER = '203.0.113.9';
/** Slow enough for guesses to queue. */
const USUAL_COST = IS_FULL_LENGTH ? 8 : 6;
/** The slowest cost that a password may have. */
const HIGH_COST = IS_FULL_LENGTH ? 12 : 10;

let opened: TestService;
let limited: TestService;
beforeAll(async () => {
  const settings = { MUSTER_TRUSTED_PROXIES: '127.0.0.1', MUSTER_PROXY_SECRET: PROXY_SECRET };
  opened = await openTestService(settings);
  limited = await openTestService({ ...settings, MUSTER_LIMITS_SCALE: '1' });
});
afterAll(async () => {
  await opened[Symbol.asyncDispose]();
  await limited[Symbol.asyncDispose]();
});

/**
 * Sends wrong passwords from one address concurrently, and returns the statuses. Every refusal but a 401 must have
 * Retry-After.
 */
async function guess(site: ShownSite, count: number): Promise<number[]> {
  const guesses = Array.from({ length: count }, async (_, number) => {
    const { status, headers } = await site.visit('/', { address: ATTACKER, ...credentials('ann', `wrong ${number}`) });
    expect([401, 429, 503]).toContain(status);
    if (status !== 401) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    return status;
  });
  return await Promise.all(guesses);
}

/** Requests the page until the password is compared, and waits as Retry-After says. */
async function enter(site: ShownSite, user: string): Promise<number> {
  return await waitFor(async () => {
    const { status } = await site.visit('/', { address: PLAYER, ...credentials(user, 'right') });
    return status !== 503 && status;
  }, `the password of ${user} to be compared`);
}

const several = (count: number, name: string) => Array.from({ length: count }, (_, index) => `${name} ${index}`);

describe('passwords of sites', () => {
  test('passwords: wrong ones for one site do not block another site', async () => {
    const [attacked, other] = [await makeShownSite(opened), await makeShownSite(opened)];
    await protectSite(opened.api, attacked, ['ann'], USUAL_COST);
    const users = several(15, 'user');
    await protectSite(opened.api, other, users, USUAL_COST);
    const guesses = guess(attacked, 60);
    const entered = await Promise.all(users.map((user) => enter(other, user)));
    expect(entered).toEqual(users.map(() => 200));
    await guesses;
  });

  test('passwords: wrong ones from one address do not block other addresses', async () => {
    const site = await makeShownSite(opened);
    const users = several(15, 'user');
    await protectSite(opened.api, site, ['ann', ...users], USUAL_COST);
    const guesses = guess(site, 60);
    const entered = await Promise.all(users.map((user) => enter(site, user)));
    expect(entered).toEqual(users.map(() => 200));
    await guesses;
  });

  test('passwords: one that cannot be compared now gets a 503 and never counts as wrong', async () => {
    const site = await makeShownSite(opened);
    await protectSite(opened.api, site, ['ann', 'bob'], USUAL_COST);
    const guesses = guess(site, 300);
    const right = site.visit('/', { address: ATTACKER, ...credentials('bob', 'right') });
    expect(await guesses).toContain(503);
    const { status, headers } = await right;
    expect([200, 503]).toContain(status);
    if (status === 503) expect(headers.get('retry-after')).not.toBeNull();
    // Later it is compared.
    expect(await enter(site, 'bob')).toBe(200);
  });

  test('passwords: a stored hash that none can be compared with admits no one', async () => {
    const site = await makeShownSite(opened);
    await protectSite(opened.api, site, ['ann', 'bob'], USUAL_COST);
    await using database = openDatabase(opened.database_address, 1);
    await database.queries.execute(sql`
      update namespace_auth_users set password = left(password, 59) || '/'
      where namespace_id = ${site.namespace_id} and "user" = 'ann'`);
    expect((await site.visit('/', { address: PLAYER, ...credentials('ann', 'right') })).status).toBe(401);
    expect(await enter(site, 'bob')).toBe(200);
  });

  test('passwords: the files of a page need one comparison together', async () => {
    const site = await makeShownSite(limited);
    await protectSite(limited.api, site, ['ann'], USUAL_COST);
    const visits = Array.from({ length: 200 }, () =>
      site.visit('/', { address: PLAYER, ...credentials('ann', 'right') }),
    );
    expect((await Promise.all(visits)).every(({ status }) => status === 200)).toBe(true);
  });

  test('passwords: an unknown user takes as long as a known one', async () => {
    const site = await makeShownSite(opened);
    await protectSite(opened.api, site, ['ann'], HIGH_COST);
    const fastest = async (user: string) => {
      const times: number[] = [];
      for (const number of [1, 2, 3]) {
        const started = performance.now();
        expect((await site.visit('/', credentials(user, `wrong ${number}`))).status).toBe(401);
        times.push(performance.now() - started);
      }
      return Math.min(...times);
    };
    // A comparison takes at least 50 ms, an answer without one a few.
    expect(await fastest('unknown')).toBeGreaterThan((await fastest('ann')) / 4);
  });
});

describe('rate limits of sites', () => {
  /** Sends requests until an answer has another status, and returns it. */
  async function firstOther(count: number, status: number, visit: (number: number) => Promise<Response>) {
    for (let number = 0; number < count; number += 50) {
      const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => visit(number + index)));
      const other = answers.find((answer) => answer.status !== status);
      await Promise.all(answers.map((answer) => answer.bytes()));
      if (other) return other;
    }
    throw new Error(`${count} answers of ${status}`);
  }

  test('passwords: guesses are limited for an address and a site, without effect on others', async () => {
    const site = await makeShownSite(limited);
    await protectSite(limited.api, site, ['ann'], 4);
    const refused = await firstOther(200, 401, (number) =>
      site.visit('/', { address: ATTACKER, ...credentials('ann', `wrong ${number}`) }),
    );
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await site.visit('/', { address: PLAYER, ...credentials('ann', 'right') })).status).toBe(200);
  });

  test('files: requests are limited for an address and a site, without effect on others', async () => {
    const [site, other] = [await makeShownSite(limited), await makeShownSite(limited)];
    await protectSite(limited.api, site, [], USUAL_COST);
    const refused = await firstOther(13_000, 401, () => site.visit('/', { address: ATTACKER }));
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await site.visit('/', { address: PLAYER })).status).toBe(401);
    expect((await other.visit('/', { address: ATTACKER })).status).toBe(200);
  });
});
