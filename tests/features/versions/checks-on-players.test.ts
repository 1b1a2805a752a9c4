import { describe, expect, test } from 'bun:test';
import type { CaptchaConfig, GameModeConfig, MatchmakerConfig } from '../../../src/features/versions/config.ts';
import { type VersionContext, versionProblems } from '../../../src/features/versions/rules.ts';
import { parseAllowList } from '../../../src/platform/outbound/addresses.ts';
import { expectAdvice } from '../../support/problem-advice.ts';

const BUILD = crypto.randomUUID();
const CONTEXT: VersionContext = {
  region_slugs: ['local'],
  build_ids: new Set([BUILD]),
  is_site: false,
  shared_captchas: [],
  allowed_targets: parseAllowList([]),
};

function problemsOf(
  matchmaker: MatchmakerConfig,
  mode: GameModeConfig = {},
  prefix = 'config/matchmaker/',
  context = CONTEXT,
): string[] {
  const docker = { image_id: BUILD };
  const config = { matchmaker: { docker, ...matchmaker, game_modes: { default: mode } } };
  const found = versionProblems({ display_name: '1', config }, context);
  expectAdvice(found);
  const problems = found.map(({ path }) => path.join('/'));
  for (const problem of problems) expect(problem).toStartWith(prefix);
  return problems.map((problem) => problem.slice(prefix.length));
}

describe('versions: captcha', () => {
  const KEY_PAIR = { site_key: 'site', secret_key: 'secret' };
  const LIMITS = { requests_before_reverify: 600, verification_ttl: 12 * 3_600_000 };
  const captchaProblems = (captcha: Partial<CaptchaConfig>) => problemsOf({ captcha: { ...LIMITS, ...captcha } });

  test('must have a provider', () => {
    expect(captchaProblems({})).toEqual(['captcha-meta/must-have-one']);
  });

  test('may have values at its limits, and not beyond', () => {
    expect(captchaProblems({ turnstile: KEY_PAIR })).toEqual([]);
    expect(
      captchaProblems({
        turnstile: KEY_PAIR,
        requests_before_reverify: LIMITS.requests_before_reverify + 1,
        verification_ttl: LIMITS.verification_ttl + 1,
      }),
    ).toEqual(['captcha/requests-before-reverify/too-high', 'captcha/verification-ttl/too-high']);
  });

  const KEYS = [
    ['hcaptcha', 'site_key', 36],
    ['hcaptcha', 'secret_key', 42],
    ['turnstile', 'site_key', 30],
    ['turnstile', 'secret_key', 40],
  ] as const;
  for (const [provider, key, bytes_max] of KEYS) {
    test(`${key} of ${provider} has 1 to ${bytes_max} bytes`, () => {
      const withKey = (text: string) => captchaProblems({ [provider]: { ...KEY_PAIR, [key]: text } });
      const path = `captcha/${provider}/${key.replace('_', '-')}`;
      expect(withKey('x'.repeat(bytes_max))).toEqual([]);
      expect(withKey('')).toEqual([`${path}/too-short`]);
      expect(withKey('x'.repeat(bytes_max + 1))).toEqual([`${path}/too-long`]);
    });
  }

  test('of hcaptcha needs both keys, whatever its level', () => {
    expect(captchaProblems({ hcaptcha: { level: 'easy' } })).toEqual([
      'captcha/hcaptcha/site-key/required',
      'captcha/hcaptcha/secret-key/required',
    ]);
  });

  test('needs no keys if the service has its own; one of two keys is refused', () => {
    const shared = { ...CONTEXT, shared_captchas: ['hcaptcha', 'turnstile'] };
    const withShared = (captcha: Partial<CaptchaConfig>) =>
      problemsOf({ captcha: { ...LIMITS, ...captcha } }, {}, undefined, shared);
    expect(withShared({ hcaptcha: { level: 'always_on' }, turnstile: {} })).toEqual([]);
    expect(withShared({ turnstile: { site_key: 'site' } })).toEqual(['captcha/turnstile/secret-key/required']);
  });

  test('of turnstile may have a key for each domain', () => {
    const withDomains = (domains: Record<string, { secret_key: string }>) =>
      captchaProblems({ turnstile: { domains } });
    expect(withDomains({ 'play.example.com': { secret_key: 'x'.repeat(40) }, localhost: { secret_key: 'x' } })).toEqual(
      [],
    );
    expect(withDomains({ 'a b': { secret_key: '' }, 'https://a.example': { secret_key: 'x'.repeat(41) } })).toEqual([
      'captcha/turnstile/domains/*a b*/invalid',
      'captcha/turnstile/domains/*a b*/secret-key/too-short',
      'captcha/turnstile/domains/*https://a.example*/invalid',
      'captcha/turnstile/domains/*https://a.example*/secret-key/too-long',
    ]);
    expect(withDomains({})).toEqual(['captcha/turnstile/site-key/required', 'captcha/turnstile/secret-key/required']);
    const many = Object.fromEntries(
      Array.from({ length: 33 }, (_, index) => [`d${index}.example`, { secret_key: 'x' }]),
    );
    expect(withDomains(many)).toEqual(['captcha/turnstile/domains-meta/too-many']);
  });

  test('may name the hosts on which it may be solved', () => {
    const withNames = (...hostnames: string[]) => captchaProblems({ hcaptcha: { ...KEY_PAIR, hostnames } });
    expect(withNames('play.example.com', 'localhost', '127.0.0.1')).toEqual([]);
    expect(withNames('ok.example', '*.example.com', 'A.example')).toEqual([
      'captcha/hcaptcha/hostnames/1/invalid',
      'captcha/hcaptcha/hostnames/2/invalid',
    ]);
  });

  test('by proof of work has a difficulty of 1 to 10,000', () => {
    const withDifficulty = (difficulty?: number) =>
      captchaProblems({ pow: difficulty === undefined ? {} : { difficulty } });
    expect([undefined, 1, 10_000].flatMap(withDifficulty)).toEqual([]);
    expect([0, 10_001].flatMap(withDifficulty)).toEqual([
      'captcha/pow/difficulty/too-low',
      'captcha/pow/difficulty/too-high',
    ]);
  });
});

describe('versions: external verification', () => {
  const verificationProblems = (url: string, headers?: Record<string, string>) =>
    problemsOf(
      {},
      { actions: { find: { enabled: true, verification_config: { url, ...(headers ? { headers } : {}) } } } },
      'config/matchmaker/game-modes/*default*/find-config/verification-config/',
    );

  const ADDRESSES: [string, string[]][] = [
    ['nonsense', ['url/invalid']],
    ['', ['url/invalid']],
    ['http://', ['url/invalid']],
    ['ftp://example.com', ['url/invalid-scheme']],
    ['file:///etc/passwd', ['url/invalid-scheme']],
    ...[
      'http://localhost',
      'http://LOCALHOST.',
      'http://a.localhost:80/x',
      'http://printer.local',
      'http://127.0.0.1',
      'http://127.1',
      'http://2130706433',
      'http://0x7f.1',
      'http://0.0.0.0',
      'http://10.0.0.1',
      'http://172.31.255.255',
      'http://192.168.0.1',
      'http://100.64.0.1',
      'http://169.254.169.254/latest/meta-data',
      'http://198.18.0.1',
      'http://224.0.0.1',
      'http://255.255.255.255',
      'http://[::1]',
      'http://[::]',
      'http://[::ffff:127.0.0.1]',
      'http://[64:ff9b::7f00:1]',
      'http://[fd00::1]',
      'http://[fe80::1]',
      'http://[ff02::1]',
    ].map((url): [string, string[]] => [url, ['url/invalid-ip']]),
    ['http://172.32.0.1', []],
    ['https://93.184.216.34:8443/check?game=1', []],
    ['https://[2606:4700::1111]/', []],
    ['https://players.example.com/verify', []],
    ['https://local.example.com', []],
    ['https://user:secret@example.com', ['url/invalid']],
    ['https://example.com:25', ['url/invalid-port']],
  ];
  for (const [url, problems] of ADDRESSES) {
    test(`at ${JSON.stringify(url)}: ${problems.join() || 'valid'}`, () => {
      expect(verificationProblems(url)).toEqual(problems);
    });
  }

  test('has up to 32 valid headers', () => {
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, 'y']));
    expect(verificationProblems('https://example.com', many(32))).toEqual([]);
    expect(verificationProblems('https://example.com', many(33))).toEqual(['headers-meta/too-many']);
    const headers = { '': 'x', 'a b': 'x', 'x-ok': '', 'x-line': 'a\r\nb: c', 'x-zero': '\0', 'x-wide': '€' };
    expect(verificationProblems('https://example.com', headers)).toEqual([
      'headers/**/invalid-name',
      'headers/*a b*/invalid-name',
      'headers/*x-line*/invalid-value',
      'headers/*x-zero*/invalid-value',
      'headers/*x-wide*/invalid-value',
    ]);
  });

  test('has no header that belongs to the connection', () => {
    const names = ['Host', 'content-length', 'Transfer-Encoding', 'connection', 'accept-encoding'];
    expect(verificationProblems('https://example.com', Object.fromEntries(names.map((name) => [name, 'x'])))).toEqual(
      names.map((name) => `headers/*${name}*/invalid-name`),
    );
  });

  test('has a secret of 24 to 64 bytes, or none', () => {
    const secretProblems = (secret: string) =>
      problemsOf(
        {},
        { actions: { join: { enabled: true, verification: { url: 'https://example.com', secret } } } },
        'config/matchmaker/game-modes/*default*/join-config/verification-config/',
      );
    const ofBytes = (count: number) => `whsec_${Buffer.alloc(count, 1).toString('base64')}`;
    for (const secret of [ofBytes(24), ofBytes(64)]) expect(secretProblems(secret)).toEqual([]);
    for (const secret of ['', 'whsec_', 'x'.repeat(40), ofBytes(23), ofBytes(65), `${ofBytes(24)}!`]) {
      expect([secret, ...secretProblems(secret)]).toEqual([secret, 'secret/invalid']);
    }
  });

  test("is checked for each action, by the contract's name and by the specification's", () => {
    const enabled = true;
    const problems = problemsOf(
      {},
      {
        actions: {
          find: { enabled, verification: { url: 'x' } },
          join: { enabled, verification_config: { url: 'x' } },
          create: { enabled, verification: { url: 'x' } },
        },
      },
    );
    expect(problems).toEqual(
      ['find', 'join', 'join'].map((action) => `game-modes/*default*/${action}-config/verification-config/url/invalid`),
    );
  });
});
