import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  chooseResponse,
  metadataOf,
  type Provider,
  providersOf,
  readVerdict,
  type SharedKeys,
  siteverifyForm,
  type Widget,
} from '../../../src/features/captcha/rules.ts';

const TIMES = { requests_before_reverify: 5, verification_ttl: 60_000 };
const HCAPTCHA = { site_key: 'h-site', secret_key: 'h-secret' };
const TURNSTILE = { site_key: 't-site', secret_key: 't-secret' };
const SHARED: SharedKeys = {
  hcaptcha: { site_key: 'our-h', secret_key: 'our-h-secret' },
  turnstile: { site_key: 'our-t', secret_key: 'our-t-secret' },
};
const keysOf = (providers: Provider[]) =>
  providers.map((one) => (one.name === 'pow' ? ['pow', one.difficulty] : [one.name, one.site_key, one.secret_key]));

describe('captcha: the providers of a version', () => {
  test('are none without keys of the version or the service', () => {
    expect(providersOf({ ...TIMES, hcaptcha: {}, turnstile: {} }, {}, undefined)).toEqual([]);
  });

  test('are in the order in which clients see them, whatever their order in the version', () => {
    const config = { ...TIMES, pow: {}, turnstile: TURNSTILE, hcaptcha: HCAPTCHA };
    expect(keysOf(providersOf(config, SHARED, undefined))).toEqual([
      ['hcaptcha', 'h-site', 'h-secret'],
      ['turnstile', 't-site', 't-secret'],
      ['pow', 500],
    ]);
  });

  test('have the keys of the service where the version has none; hcaptcha with a level is an older spelling', () => {
    const config = { ...TIMES, hcaptcha: { level: 'easy' }, turnstile: {} };
    expect(keysOf(providersOf(config, SHARED, undefined))).toEqual([
      ['hcaptcha', 'our-h', 'our-h-secret'],
      ['turnstile', 'our-t', 'our-t-secret'],
    ]);
  });

  const DOMAINS = {
    'example.com': { secret_key: 'wide' },
    'play.example.com': { secret_key: 'narrow' },
    localhost: { secret_key: 'local' },
  };
  const ORIGINS: [string | undefined, string | undefined, string[]][] = [
    ['https://example.com', 'wide', ['example.com']],
    ['https://www.example.com:8443', 'wide', ['example.com']],
    ['https://play.example.com', 'narrow', ['play.example.com']],
    ['https://eu.play.example.com', 'narrow', ['play.example.com']],
    ['http://localhost:3000', 'local', ['localhost']],
    ['https://notexample.com', undefined, []],
    ['https://example.com.evil.example', undefined, []],
    ['null', undefined, []],
    [undefined, undefined, []],
  ];
  for (const [origin, secret_key, hostnames] of ORIGINS) {
    test(`of turnstile with a key for each domain, an older spelling: ${origin ?? 'no page'}`, () => {
      const [widget] = providersOf({ ...TIMES, turnstile: { domains: DOMAINS } }, SHARED, origin);
      expect(widget).toEqual({ name: 'turnstile', site_key: undefined, secret_key, hostnames });
    });
  }

  test('of turnstile with keys for some domains uses its other keys on all other pages', () => {
    const config = { ...TIMES, turnstile: { ...TURNSTILE, domains: DOMAINS } };
    expect(keysOf(providersOf(config, {}, undefined))).toEqual([['turnstile', 't-site', 't-secret']]);
    expect(keysOf(providersOf(config, {}, 'https://example.com'))).toEqual([['turnstile', 't-site', 'wide']]);
  });
});

describe('captcha: a client sees', () => {
  const metadata = (config: object, origin?: string) =>
    metadataOf(providersOf({ ...TIMES, ...config }, SHARED, origin), 'https://here/challenge');

  test("hcaptcha's key under both names", () => {
    expect(metadata({ hcaptcha: HCAPTCHA })).toEqual({ hcaptcha: { site_id: 'h-site', site_key: 'h-site' } });
  });

  test("turnstile's key, and none if only the game knows it", () => {
    expect(metadata({ turnstile: TURNSTILE })).toEqual({ turnstile: { site_key: 't-site' } });
    const domains = { 'example.com': { secret_key: 'wide' } };
    expect(metadata({ turnstile: { domains } }, 'https://example.com')).toEqual({ turnstile: {} });
  });

  test('only hcaptcha if there are both, and always a proof of work if there is one', () => {
    const pow = { challenge_url: 'https://here/challenge' };
    expect(metadata({ turnstile: TURNSTILE, hcaptcha: HCAPTCHA, pow: {} })).toEqual({
      hcaptcha: { site_id: 'h-site', site_key: 'h-site' },
      pow,
    });
    expect(metadata({ pow: {} })).toEqual({ pow });
  });

  test('no secret', () => {
    const all = metadata({ hcaptcha: HCAPTCHA, turnstile: {}, pow: {} });
    expect(JSON.stringify(all)).not.toContain('secret');
  });
});

describe('captcha: an answer', () => {
  const providers = providersOf({ ...TIMES, turnstile: TURNSTILE, hcaptcha: HCAPTCHA }, {}, undefined);
  const answer = (client_response: string) => ({ client_response });

  test('of a provider that the version does not have counts as none', () => {
    expect(chooseResponse(providers, {})).toBeUndefined();
    expect(chooseResponse(providers, { pow: answer('p') })).toBeUndefined();
  });

  test('may be of either provider; the first of several counts', () => {
    expect(chooseResponse(providers, { turnstile: answer('t') })?.provider.name).toBe('turnstile');
    const both = chooseResponse(providers, { pow: answer('p'), turnstile: answer('t'), hcaptcha: answer('h') });
    expect([both?.provider.name, both?.client_response]).toEqual(['hcaptcha', 'h']);
  });
});

describe('captcha: the request to a provider', () => {
  const widget = (name: Widget['name']): Widget => ({ name, site_key: 'site', secret_key: undefined, hostnames: [] });
  const sent = {
    secret_key: 'secret',
    client_response: 'a&secret=b\r\nc',
    address: '203.0.113.7',
    idempotency_key: 'k',
  };
  const formOf = (name: Widget['name'], more: object = {}) =>
    Object.fromEntries(new URLSearchParams(siteverifyForm(widget(name), { ...sent, ...more })));

  test("is a form to which a client's answer can add nothing", () => {
    const common = { secret: 'secret', response: 'a&secret=b\r\nc', remoteip: '203.0.113.7' };
    expect(formOf('hcaptcha')).toEqual({ ...common, sitekey: 'site' });
    expect(formOf('turnstile')).toEqual({ ...common, idempotency_key: 'k' });
  });

  test('has no address if none is known', () => {
    expect(formOf('hcaptcha', { address: '' })).not.toContainKey('remoteip');
  });
});

test('captcha: an answer of a provider means yes only with a true "success" and a good status', () => {
  const widget: Widget = { name: 'turnstile', site_key: 'site', secret_key: 'secret', hostnames: ['play.example.com'] };
  const said = fc.oneof(
    fc.jsonValue(),
    fc.record(
      {
        success: fc.oneof(fc.boolean(), fc.jsonValue()),
        hostname: fc.oneof(fc.constantFrom('play.example.com', 'a.play.example.com', 'evil.example'), fc.jsonValue()),
        sitekey: fc.oneof(fc.constant('site'), fc.jsonValue()),
        'error-codes': fc.oneof(fc.array(fc.string()), fc.jsonValue()),
      },
      { requiredKeys: [] },
    ),
  );
  let yes = 0;
  fc.assert(
    fc.property(said, fc.integer({ min: 100, max: 599 }), (answer, drawn) => {
      const status = drawn % 2 === 0 ? 200 : drawn;
      const verdict = readVerdict(widget, { status, body: answer });
      const { success, hostname, sitekey } = (answer ?? {}) as Record<string, unknown>;
      const is_here = typeof hostname === 'string' && /^(.+[.])?play[.]example[.]com$/i.test(hostname);
      const is_yes = success === true && status >= 200 && status <= 299 && is_here;
      const is_ours = typeof sitekey !== 'string' || sitekey === 'site';
      expect(verdict.is === 'solved').toBe(is_yes && is_ours);
      if (verdict.is === 'solved') yes += 1;
      else for (const reason of verdict.reasons) expect(reason).toMatch(/^[\w -]{1,64}$/);
    }),
    { numRuns: 2_000 },
  );
  expect(yes).toBeGreaterThan(0);
});
