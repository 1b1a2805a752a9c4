import type { CaptchaConfig } from './config.ts';
import { below, type ProblemPath, toPathPart } from './problem-paths.ts';

export const REQUESTS_MAX = 600;
export const TTL_MS_MAX = 12 * 3_600_000;
export const DIFFICULTY_MAX = 10_000;
export const DOMAINS_MAX = 32;
/** Lengths of keys in bytes. */
export const HCAPTCHA_KEYS = { site_key: 36, secret_key: 42 };
export const TURNSTILE_KEYS = { site_key: 30, secret_key: 40 };
const HOSTNAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Returns what is wrong with a version's captcha settings. `shared`: providers for which the service has its own keys. */
export function captchaProblems(captcha: CaptchaConfig, shared: readonly string[]): ProblemPath[] {
  const { requests_before_reverify, verification_ttl, hcaptcha, turnstile, pow } = captcha;
  const paths = [
    ...(requests_before_reverify > REQUESTS_MAX ? [['requests-before-reverify', 'too-high']] : []),
    ...(verification_ttl > TTL_MS_MAX ? [['verification-ttl', 'too-high']] : []),
    ...(hcaptcha ? below(['hcaptcha'], keyProblems(hcaptcha, HCAPTCHA_KEYS, shared.includes('hcaptcha'))) : []),
    ...below(['hcaptcha'], hostnameProblems(hcaptcha?.hostnames)),
    ...(turnstile ? below(['turnstile'], turnstileProblems(turnstile, shared.includes('turnstile'))) : []),
    ...below(['turnstile'], hostnameProblems(turnstile?.hostnames)),
    ...below(['pow', 'difficulty'], difficultyProblems(pow?.difficulty)),
  ];
  const has_provider = hcaptcha !== undefined || turnstile !== undefined || pow !== undefined;
  return [...below(['captcha'], paths), ...(has_provider ? [] : [['captcha-meta', 'must-have-one']])];
}

type Keys = { site_key?: string | undefined; secret_key?: string | undefined };

/** Requires both keys, or none if they are optional. */
function keyProblems(
  keys: Keys,
  bytes_max: { site_key: number; secret_key: number },
  is_optional: boolean,
): ProblemPath[] {
  if (is_optional && keys.site_key === undefined && keys.secret_key === undefined) return [];
  return (['site_key', 'secret_key'] as const).flatMap((name) =>
    below([name.replace('_', '-')], textProblems(keys[name], bytes_max[name])),
  );
}

function turnstileProblems(turnstile: NonNullable<CaptchaConfig['turnstile']>, is_shared: boolean): ProblemPath[] {
  const domains = Object.entries(turnstile.domains ?? {});
  return [
    ...(domains.length > DOMAINS_MAX ? [['domains-meta', 'too-many']] : []),
    ...domains
      .slice(0, DOMAINS_MAX)
      .flatMap(([domain, { secret_key }]) => [
        ...below(['domains', toPathPart(domain)], HOSTNAME.test(domain) ? [] : [['invalid']]),
        ...below(['domains', toPathPart(domain), 'secret-key'], textProblems(secret_key, TURNSTILE_KEYS.secret_key)),
      ]),
    // If each domain has a key, the general keys only serve pages of other domains.
    ...keyProblems(turnstile, TURNSTILE_KEYS, is_shared || domains.length > 0),
  ];
}

function hostnameProblems(hostnames: readonly string[] = []): ProblemPath[] {
  return hostnames.flatMap((name, index) => (HOSTNAME.test(name) ? [] : [['hostnames', String(index), 'invalid']]));
}

function difficultyProblems(difficulty = 1): ProblemPath[] {
  if (difficulty < 1) return [['too-low']];
  return difficulty > DIFFICULTY_MAX ? [['too-high']] : [];
}

function textProblems(text: string | undefined, bytes_max: number): ProblemPath[] {
  if (text === undefined) return [['required']];
  if (text === '') return [['too-short']];
  return Buffer.byteLength(text) > bytes_max ? [['too-long']] : [];
}
