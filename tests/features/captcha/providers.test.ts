import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { CaptchaDependencies } from '../../../src/features/captcha/captcha.ts';
import type { Widget } from '../../../src/features/captcha/rules.ts';
import type { CaptchaConfig } from '../../../src/features/versions/config.ts';
import type { DatabaseAddress } from '../../../src/platform/database/database.ts';
import { createOutbound, OutboundFailure } from '../../../src/platform/outbound/outbound.ts';
import { type CaptchaChecks, openCaptchaChecks, outcomeOfCheck } from '../../support/captcha/captcha-checks.ts';
import { type CaptchaProvider, openCaptchaProvider } from '../../support/captcha/captcha-provider.ts';
import { createFixedClock } from '../../support/clock.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import { hostileTargets } from '../../support/network/hostile-target.ts';
import { waitFor } from '../../support/wait.ts';

const TIMES = { requests_before_reverify: 1, verification_ttl: 60_000 };
const NAMES = ['hcaptcha', 'turnstile'] as const;
const FAILED = 'CAPTCHA_CAPTCHA_FAILED';
const UNAVAILABLE = 'CAPTCHA_CAPTCHA_UNAVAILABLE';

const opened = new AsyncDisposableStack();
const clock = createFixedClock();
let provider: CaptchaProvider;
let database_address: DatabaseAddress;
let checks: CaptchaChecks;
let admitting: CaptchaChecks;
const open = async (more: Partial<CaptchaDependencies> = {}) =>
  opened.use(await openCaptchaChecks({ database_address, clock, provider, more }));

beforeAll(async () => {
  provider = opened.use(await openCaptchaProvider());
  database_address = opened.use(await openTestDatabase()).address;
  checks = await open();
  admitting = await open({ captcha_is_open_when_down: true });
}, 300_000);
afterAll(() => opened.disposeAsync());

let count = 0;
/** Returns a captcha with an answer of its own. */
function captcha(behavior: string): string {
  count += 1;
  return `${behavior}:${count}`;
}
function game(name: Widget['name'], more: object = {}): { namespace_id: string; config: CaptchaConfig } {
  const keys = { site_key: 'site', secret_key: 'secret', ...more };
  return { namespace_id: crypto.randomUUID(), config: { ...TIMES, [name]: keys } };
}
const sent = (name: Widget['name'], client_response: string) => ({ captcha: { [name]: { client_response } } });
/** Returns the outcome of a captcha, and of a request without one after it. */
async function use(used_checks: CaptchaChecks, name: Widget['name'], client_response: string, place = game(name)) {
  const outcome = outcomeOfCheck(await used_checks.check(place, sent(name, client_response)));
  const is_known = (await used_checks.check(place)).error === undefined;
  return { outcome, is_known };
}

describe.each(NAMES)('%s answers', (name) => {
  const SAID: [string, string, string, number?][] = [
    ['ok', 'solved', 'solved'],
    ['no-hostname', 'solved', 'solved'],
    ['wrong', FAILED, FAILED],
    ['duplicate', FAILED, FAILED],
    ['wrong-400', FAILED, FAILED],
    // A mistake of the developer must not open the game.
    ['bad-secret', FAILED, FAILED],
    ['other-sitekey', FAILED, FAILED],
    ['strange-codes', FAILED, FAILED],
    // A failure that clients can cause must not open the game.
    ['403', UNAVAILABLE, UNAVAILABLE],
    ['429', UNAVAILABLE, UNAVAILABLE],
    ['internal-error', UNAVAILABLE, 'let_through'],
    ['as-text', UNAVAILABLE, 'let_through'],
    ['yes-500', UNAVAILABLE, 'let_through'],
    ['500', UNAVAILABLE, 'let_through'],
    ['html', UNAVAILABLE, 'let_through'],
    ['empty', UNAVAILABLE, 'let_through'],
    ['list', UNAVAILABLE, 'let_through'],
    ['nothing', UNAVAILABLE, 'let_through'],
  ];
  for (const [behavior, closed, when_open] of SAID) {
    test(`${behavior}: ${closed}; ${when_open} if the operator admits unchecked captchas`, async () => {
      expect(await use(checks, name, captcha(behavior))).toEqual({ outcome: closed, is_known: closed === 'solved' });
      const let_in = await use(admitting, name, captcha(behavior));
      expect(let_in).toEqual({ outcome: when_open, is_known: when_open === 'solved' });
    });
  }

  // Concurrent, because each of those that only end by their deadline takes all of it.
  const TIMEOUT_MS = 300;
  for (const behavior of Object.keys(hostileTargets(''))) {
    test(`with something invalid (${behavior}): the captcha is refused`, async () => {
      const impatient = await open({ captcha_timeout_ms: TIMEOUT_MS });
      const outcome = await use(impatient, name, captcha(behavior));
      expect(outcome).toEqual({ outcome: UNAVAILABLE, is_known: false });
      const [event] = impatient.events;
      expect(event).toMatchObject({ event: 'captcha_not_checked', provider: name });
    });
  }

  test('nothing, because it is unreachable', async () => {
    const nowhere = 'http://127.0.0.1:1/';
    const unreachable = await open({ hcaptcha_url: nowhere, turnstile_url: nowhere });
    expect(await use(unreachable, name, captcha('ok'))).toEqual({ outcome: UNAVAILABLE, is_known: false });
  });

  test('yes to a captcha that was solved on an allowed page, or below one', async () => {
    const gameAt = (hostnames: string[]) => game(name, { hostnames });
    expect((await use(checks, name, captcha('ok'), gameAt(['play.example.com']))).outcome).toBe('solved');
    expect(
      (await use(checks, name, captcha('below-hostname'), gameAt(['a.example', 'play.example.com']))).outcome,
    ).toBe('solved');
    for (const behavior of ['other-hostname', 'no-hostname']) {
      const { decision, error } = await checks.check(gameAt(['play.example.com']), sent(name, captcha(behavior)));
      expect(error?.code).toBe(FAILED);
      expect(error?.message).toContain('another site');
      const { exchange, ...decided } = decision ?? {};
      expect(decided).toEqual({ decision: 'refused', provider: name, reasons: ['other-hostname'] });
      expect(exchange).toMatchObject({ status: 200, answer: { success: true } });
    }
  });

  test('codes, which are in the receipt if they look like codes', async () => {
    const codesOf = async (behavior: string) =>
      (await checks.check(game(name), sent(name, captcha(behavior)))).decision?.reasons;
    expect(await codesOf('bad-secret')).toEqual(['invalid-input-secret']);
    expect(await codesOf('strange-codes')).toEqual(['fine-code']);
  });

  test('no, and the client gets what it needs for another try, and no secret', async () => {
    const { error } = await checks.check(game(name), sent(name, captcha('bad-secret')));
    const keys = name === 'hcaptcha' ? { site_id: 'site', site_key: 'site' } : { site_key: 'site' };
    expect(error?.metadata).toEqual({ [name]: keys });
    expect(error?.message).not.toContain('secret');
  });
});

describe.each(NAMES)('a captcha of %s', (name) => {
  test('is sent to its provider with the keys, the address and nothing else', async () => {
    const once = captcha('ok');
    await checks.check(game(name), { ...sent(name, once), address: '2001:db8::1' });
    const common = { response: once, secret: 'secret', remoteip: '2001:db8::1' };
    const [asked] = provider.requestsOf(once);
    expect(asked?.path).toBe(`/${name}`);
    const { idempotency_key, ...form } = asked?.form ?? {};
    expect(form).toEqual(name === 'hcaptcha' ? { ...common, sitekey: 'site' } : common);
    if (name === 'turnstile') expect(idempotency_key).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    else expect(idempotency_key).toBeUndefined();
  });

  test('is checked once, whether it was right or wrong', async () => {
    const place = game(name);
    for (const behavior of ['ok', 'wrong']) {
      const once = captcha(behavior);
      await checks.check(place, sent(name, once));
      const { decision, error } = await checks.check(place, sent(name, once));
      expect(error?.message).toContain('used before');
      expect(decision?.reasons).toEqual(['used-before']);
      expect(provider.requestsOf(once).length).toBe(1);
    }
  });

  test('is valid once for all games that share its keys', async () => {
    const once = captcha('ok');
    expect((await use(checks, name, once)).outcome).toBe('solved');
    expect((await use(checks, name, once)).outcome).toBe(FAILED);
  });

  test('cannot be used up with other keys', async () => {
    const once = captcha('ok');
    await checks.check(game(name, { secret_key: 'mine' }), sent(name, once));
    expect((await use(checks, name, once)).outcome).toBe('solved');
  });

  test('is accepted once of 200 concurrent uses on two processes', async () => {
    const second = await open();
    const once = captcha('ok');
    const uses = Array.from({ length: 200 }, (_, index) =>
      (index % 2 === 0 ? checks : second).check(game(name), sent(name, once)),
    );
    const outcomes = (await Promise.all(uses)).map(outcomeOfCheck);
    expect(outcomes.filter((outcome) => outcome === 'solved').length).toBe(1);
    expect(outcomes.filter((outcome) => outcome === FAILED).length).toBe(199);
    expect(provider.requestsOf(once).length).toBe(1);
  });

  test('that was never sent may be used again', async () => {
    for (const kind of ['too_busy', 'paused'] as const) {
      const once = captcha('ok');
      const post = async () => {
        throw new OutboundFailure(kind, 'not now');
      };
      const busy = await open({ outbound: { post }, captcha_is_open_when_down: true });
      // Other captchas of the same game use all connections, which is not the fault of the provider.
      expect((await use(busy, name, once)).outcome).toBe(kind === 'too_busy' ? UNAVAILABLE : 'let_through');
      expect((await use(checks, name, once)).outcome).toBe('solved');
    }
  });

  test('that did not reach its provider may be used again', async () => {
    // Nothing listens there, or it does not speak TLS.
    for (const origin of ['http://127.0.0.1:1', new URL(provider.hcaptcha).origin.replace('http:', 'https:')]) {
      const once = captcha('ok');
      const away = await open({ hcaptcha_url: `${origin}/hcaptcha`, turnstile_url: `${origin}/turnstile` });
      expect((await use(away, name, once)).outcome).toBe(UNAVAILABLE);
      expect((await use(checks, name, once)).outcome).toBe('solved');
    }
  });

  test('may take its provider most of the time', async () => {
    const once = captcha('slow');
    expect((await use(checks, name, once)).outcome).toBe('solved');
    expect(provider.requestsOf(once).length).toBe(1);
  });

  test('is not awaited once its player has disconnected', async () => {
    const leaving = new AbortController();
    const once = captcha('silence');
    const waiting = checks.check(game(name), { ...sent(name, once), deadline: leaving });
    await waitFor(() => provider.requestsOf(once).length > 0, 'the request to the provider');
    leaving.abort();
    expect(outcomeOfCheck(await waiting)).toBe(UNAVAILABLE);
    expect(provider.requestsOf(once).length).toBe(1);
  });

  test('of a published test key is valid any number of times, wherever it was solved', async () => {
    const secret_key = name === 'hcaptcha' ? `0x${'0'.repeat(40)}` : '1x0000000000000000000000000000000AA';
    const place = game(name, { secret_key, hostnames: ['play.example.com'] });
    const always = captcha('other-hostname');
    for (const _ of [1, 2]) expect(outcomeOfCheck(await checks.check(place, sent(name, always)))).toBe('solved');
    expect(provider.requestsOf(always).length).toBe(2);
  });
});

describe('after a lost answer', () => {
  test('turnstile is asked once more, with a key that marks the repetition', async () => {
    const once = captcha('cut-once');
    expect(await use(checks, 'turnstile', once)).toEqual({ outcome: 'solved', is_known: true });
    const keys = provider.requestsOf(once).map(({ form }) => form.idempotency_key);
    expect(keys).toEqual([keys[0], keys[0]]);
    expect((await use(checks, 'turnstile', once)).outcome).toBe(FAILED);
  });

  test('turnstile may be asked again later with the same key; two captchas have two keys', async () => {
    const later = captcha('500');
    expect((await use(checks, 'turnstile', later)).outcome).toBe(UNAVAILABLE);
    expect((await use(checks, 'turnstile', later)).outcome).toBe(UNAVAILABLE);
    await use(checks, 'turnstile', captcha('500'));
    const keys = provider.requestsOf(later).map(({ form }) => form.idempotency_key);
    expect([keys.length, new Set(keys).size]).toEqual([4, 1]);
    const [last] = provider.requestsOf().slice(-1);
    expect(keys).not.toContain(last?.form.idempotency_key);
  });

  test('hcaptcha is not asked again, because it may have counted the captcha', async () => {
    const once = captcha('cut-once');
    expect((await use(checks, 'hcaptcha', once)).outcome).toBe(UNAVAILABLE);
    expect((await use(checks, 'hcaptcha', once)).outcome).toBe(FAILED);
    expect(provider.requestsOf(once).length).toBe(1);
  });
});

test('captcha: turnstile is not asked about an answer above its maximum length', async () => {
  const long = captcha(`ok${'x'.repeat(2_048)}`);
  expect((await use(checks, 'turnstile', long)).outcome).toBe(FAILED);
  expect(provider.requestsOf(long).length).toBe(0);
});

test('captcha: a page on none of the domains with turnstile keys is refused without a request', async () => {
  const place = game('turnstile', {
    site_key: undefined,
    secret_key: undefined,
    domains: { 'a.example': { secret_key: 's' } },
  });
  const once = captcha('ok');
  const { error } = await checks.check(place, { ...sent('turnstile', once), readOrigin: () => 'https://b.example' });
  expect(error?.message).toContain('no keys for the domain');
  expect(provider.requestsOf(once).length).toBe(0);
});

test('captcha: a version that relies on keys which the service no longer has admits no request', async () => {
  const place = { namespace_id: crypto.randomUUID(), config: { ...TIMES, hcaptcha: { level: 'easy' } } };
  expect(outcomeOfCheck(await admitting.check(place))).toBe(UNAVAILABLE);
  expect(outcomeOfCheck(await admitting.check(place, sent('hcaptcha', captcha('ok'))))).toBe(UNAVAILABLE);
});

test('captcha: one of another provider, or of none, is refused with the ones that are allowed', async () => {
  const place = game('hcaptcha');
  for (const solved of [{}, { turnstile: { client_response: captcha('ok') } }]) {
    const { decision, error } = await checks.check(place, { captcha: solved });
    expect(error).toMatchObject({ code: FAILED, status: 400 });
    expect(error?.message).toContain('hcaptcha');
    expect(decision).toEqual({ decision: 'refused', reasons: ['other-provider'] });
  }
});

test('captcha: a game with many requests to many namespaces does not block the captchas of others', async () => {
  const outbound = createOutbound({
    allowed_private: [],
    bulkhead_limits: { in_all: 8, of_account: 2, to_target: 2, break_ms: 5_000, slow_ms: 2_000 },
  });
  let posted = 0;
  const post: typeof outbound.post = (url, request) => {
    posted += 1;
    return outbound.post(url, request);
  };
  // The flood outlasts the request that must not wait for it.
  const flooding = await open({ outbound: { post }, captcha_timeout_ms: 60_000 });
  const shared = await open({ outbound, captcha_timeout_ms: 10_000 });
  const game_id = crypto.randomUUID();
  const leaving = new AbortController();
  const flood = Array.from({ length: 30 }, () =>
    flooding.check({ ...game('hcaptcha'), game_id }, { ...sent('hcaptcha', captcha('silence')), deadline: leaving }),
  );
  await waitFor(() => posted === flood.length, 'the flood');
  expect((await use(shared, 'hcaptcha', captcha('ok'))).outcome).toBe('solved');
  leaving.abort();
  expect(new Set((await Promise.all(flood)).map(outcomeOfCheck))).toEqual(new Set([UNAVAILABLE]));
});
