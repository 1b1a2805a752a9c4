import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import type { CaptchaConfig } from '../../../src/features/versions/config.ts';
import { type CaptchaChecks, openCaptchaChecks, outcomeOfCheck } from '../../support/captcha/captcha-checks.ts';
import { openCaptchaProvider } from '../../support/captcha/captcha-provider.ts';
import { createFixedClock } from '../../support/clock.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import { waitFor } from '../../support/wait.ts';

const TTL_MS = 60_000;
const KEYS = { site_key: 'site', secret_key: 'secret' };
const opened = new AsyncDisposableStack();
const clock = createFixedClock();
let checks: CaptchaChecks;
/** Another process on the same database. */
let other: CaptchaChecks;

beforeAll(async () => {
  const provider = opened.use(await openCaptchaProvider());
  const { address: database_address } = opened.use(await openTestDatabase());
  checks = opened.use(await openCaptchaChecks({ database_address, clock, provider }));
  other = opened.use(await openCaptchaChecks({ database_address, clock, provider }));
}, 300_000);
afterAll(() => opened.disposeAsync());

let solved = 0;
function game(more: Partial<CaptchaConfig> = {}) {
  const config = { requests_before_reverify: 3, verification_ttl: TTL_MS, hcaptcha: KEYS, ...more };
  return { namespace_id: crypto.randomUUID(), config };
}
/** Returns a captcha that is accepted. */
function captcha() {
  solved += 1;
  return { hcaptcha: { client_response: `ok:${solved}` } };
}
const outcomesOf = async (place: ReturnType<typeof game>, count: number, address = '203.0.113.7') => {
  const outcomes: string[] = [];
  for (let request = 0; request < count; request += 1)
    outcomes.push(outcomeOfCheck(await checks.check(place, { address })));
  return outcomes;
};
const REFUSED = 'CAPTCHA_CAPTCHA_REQUIRED';
const PASSED = 'solved_before';

describe('captcha: without one', () => {
  test('no request is admitted at first, however often it is repeated, and nothing is stored', async () => {
    const place = game();
    expect(await outcomesOf(place, 5)).toEqual(Array(5).fill(REFUSED));
    const rows = await checks.database.queries.execute(sql`
      select 1 from captcha_windows where namespace_id = ${place.namespace_id}`);
    expect(rows.length).toBe(0);
  });

  test('every request is admitted if the version requires none, and an answer is not read', async () => {
    const countCall = () => {
      throw new Error('no decision is recorded');
    };
    const deadline = { signal: new AbortController().signal };
    const visitor = { address: '', readOrigin: () => undefined, captcha: captcha(), deadline };
    const place = { game_id: crypto.randomUUID(), namespace_id: crypto.randomUUID(), version_id: crypto.randomUUID() };
    await checks.captcha.admit(place, visitor, countCall);
  });
});

describe('captcha: after a solved one', () => {
  test('exactly requests_before_reverify further requests are admitted', async () => {
    const place = game();
    expect(outcomeOfCheck(await checks.check(place, { captcha: captcha() }))).toBe('solved');
    expect(await outcomesOf(place, 5)).toEqual([PASSED, PASSED, PASSED, REFUSED, REFUSED]);
  });

  test('every request needs another if requests_before_reverify is 0', async () => {
    const place = game({ requests_before_reverify: 0 });
    expect(outcomeOfCheck(await checks.check(place, { captcha: captcha() }))).toBe('solved');
    expect(await outcomesOf(place, 1)).toEqual([REFUSED]);
    expect(outcomeOfCheck(await checks.check(place, { captcha: captcha() }))).toBe('solved');
  });

  test('requests are admitted until verification_ttl is over, to the millisecond', async () => {
    const place = game();
    await checks.check(place, { captcha: captcha() });
    clock.advance(TTL_MS - 1);
    expect(await outcomesOf(place, 1)).toEqual([PASSED]);
    clock.advance(1);
    expect(await outcomesOf(place, 1)).toEqual([REFUSED]);
  });

  test('no request is admitted if verification_ttl is 0', async () => {
    const place = game({ verification_ttl: 0 });
    await checks.check(place, { captcha: captcha() });
    expect(await outcomesOf(place, 1)).toEqual([REFUSED]);
  });

  test('another one starts a new window, during the old one and after it', async () => {
    const place = game();
    await checks.check(place, { captcha: captcha() });
    expect(await outcomesOf(place, 2)).toEqual([PASSED, PASSED]);
    clock.advance(TTL_MS - 1);
    await checks.check(place, { captcha: captcha() });
    clock.advance(TTL_MS - 1);
    expect(await outcomesOf(place, 4)).toEqual([PASSED, PASSED, PASSED, REFUSED]);
    await checks.check(place, { captcha: captcha() });
    expect(await outcomesOf(place, 1)).toEqual([PASSED]);
  });

  test('a refused one changes nothing', async () => {
    const place = game();
    await checks.check(place, { captcha: captcha() });
    expect(await outcomesOf(place, 2)).toEqual([PASSED, PASSED]);
    const wrong = { hcaptcha: { client_response: 'wrong:1' } };
    expect(outcomeOfCheck(await checks.check(place, { captcha: wrong }))).toBe('CAPTCHA_CAPTCHA_FAILED');
    expect(await outcomesOf(place, 2)).toEqual([PASSED, REFUSED]);
  });

  test('a version with other limits has its own window, from the same captcha', async () => {
    const place = game();
    await checks.check(place, { captcha: captcha() });
    expect(await outcomesOf(place, 3)).toEqual([PASSED, PASSED, PASSED]);
    const looser = { ...place, config: { ...place.config, requests_before_reverify: 5 } };
    expect(await outcomesOf(looser, 3)).toEqual([PASSED, PASSED, REFUSED]);
  });

  test('the window is for the address, or for its /64 in IPv6, and for no other', async () => {
    const place = game();
    await checks.check(place, { captcha: captcha(), address: '203.0.113.7' });
    expect(await outcomesOf(place, 1, '203.0.113.8')).toEqual([REFUSED]);
    expect(await outcomesOf(place, 1, '::ffff:203.0.113.7')).toEqual([PASSED]);
    await checks.check(place, { captcha: captcha(), address: '2001:db8:1:2::1' });
    expect(await outcomesOf(place, 1, '2001:db8:1:2:ffff::9')).toEqual([PASSED]);
    expect(await outcomesOf(place, 1, '2001:db8:1:3::1')).toEqual([REFUSED]);
  });

  test('the window is for the namespace and for no other, where the captcha may be harder', async () => {
    const place = game();
    await checks.check(place, { captcha: captcha() });
    expect(await outcomesOf(game(), 1)).toEqual([REFUSED]);
    expect(await outcomesOf(place, 1)).toEqual([PASSED]);
  });
});

describe('captcha: two processes on one database', () => {
  test('count together: of 40 concurrent requests exactly the allowed number is admitted', async () => {
    const place = game({ requests_before_reverify: 10 });
    await checks.check(place, { captcha: captcha() });
    const requests = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? checks : other).check(place));
    const outcomes = (await Promise.all(requests)).map(outcomeOfCheck);
    expect(outcomes.filter((outcome) => outcome === PASSED).length).toBe(10);
    expect(outcomes.filter((outcome) => outcome === REFUSED).length).toBe(30);
  });

  test('share their windows', async () => {
    const place = game();
    await other.check(place, { captcha: captcha() });
    expect(await outcomesOf(place, 1)).toEqual([PASSED]);
  });
});

test('captcha: expired windows and captchas are deleted, and nothing else', async () => {
  const place = game();
  const later = game({ verification_ttl: 12 * 3_600_000 });
  await checks.check(place, { captcha: captcha() });
  await checks.check(later, { captcha: captcha() });
  const { queries } = checks.database;
  const count = async () => {
    const [row] = await queries.execute<{ windows: number; captchas: number }>(sql`
      select (select count(*)::int from captcha_windows) as windows, (select count(*)::int from used_captchas) as captchas`);
    return row;
  };
  expect((await count())?.captchas).toBeGreaterThan(0);
  clock.advance(2 * 3_600_000);
  const working = new AbortController();
  const { stopped } = checks.captcha.startDeletingOld(working.signal);
  await waitFor(
    async () => Bun.deepEquals(await count(), { windows: 1, captchas: 0 }),
    'the expired ones to be deleted',
  );
  working.abort();
  await stopped;
  expect(await outcomesOf(later, 1)).toEqual([PASSED]);
});
