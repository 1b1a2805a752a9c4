import { cutText, withoutValues } from '../outbound-exchange.ts';
import type { CaptchaConfig } from '../versions/versions.ts';
import type { Captcha } from './wire.ts';

/** A captcha provider: a player solves the captcha in its widget, and it checks the solution. */
export interface Widget {
  name: 'hcaptcha' | 'turnstile';
  /** Undefined in an older configuration, where only the game's pages know it. */
  site_key: string | undefined;
  /** Undefined when no configured domain matches the page. */
  secret_key: string | undefined;
  /** Hosts where the captcha may be solved. Empty if the provider alone decides. */
  hostnames: readonly string[];
}

export interface ProofOfWork {
  name: 'pow';
  difficulty: number;
}

export type Provider = Widget | ProofOfWork;

/** Keys of the service, for versions without their own. */
export type SharedKeys = Partial<Record<Widget['name'], { site_key: string; secret_key: string }>>;

/** About 0.8 s of one core of 2024 (1.6 ms for a key). */
const DEFAULT_DIFFICULTY = 500;
const REASONS_MAX = 8;
const CODE = /^[\w-]{1,64}$/;

/**
 * Returns the providers of a version, the one preferred for clients first. Leaves out a provider without keys of the
 * version or the service. `origin`: the page that sent the request, if any.
 */
export function providersOf(config: CaptchaConfig, shared: SharedKeys, origin: string | undefined): Provider[] {
  const { hcaptcha, turnstile, pow } = config;
  return [
    ...(hcaptcha ? withKeys('hcaptcha', hcaptcha, shared) : []),
    ...(turnstile ? turnstileOf(turnstile, shared, origin) : []),
    ...(pow ? [{ name: 'pow', difficulty: pow.difficulty ?? DEFAULT_DIFFICULTY } as const] : []),
  ];
}

type WidgetConfig = NonNullable<CaptchaConfig['hcaptcha'] | CaptchaConfig['turnstile']>;

function withKeys(name: Widget['name'], { site_key, secret_key, hostnames = [] }: WidgetConfig, shared: SharedKeys) {
  const keys = secret_key === undefined ? shared[name] : { site_key, secret_key };
  return keys ? [{ name, ...keys, hostnames } satisfies Widget] : [];
}

/** Older configurations have a secret key per domain. A page is checked with the key of its longest matching domain. */
function turnstileOf(
  turnstile: NonNullable<CaptchaConfig['turnstile']>,
  shared: SharedKeys,
  origin: string | undefined,
): Widget[] {
  const domains = Object.entries(turnstile.domains ?? {});
  const { site_key, hostnames = [] } = turnstile;
  const host = origin !== undefined && URL.canParse(origin) ? new URL(origin).hostname : undefined;
  const matching = domains.filter(([domain]) => host !== undefined && isWithin(host, domain));
  const [chosen] = matching.toSorted(([one], [other]) => other.length - one.length);
  if (chosen) {
    const [domain, { secret_key }] = chosen;
    return [{ name: 'turnstile', site_key, secret_key, hostnames: hostnames.length > 0 ? hostnames : [domain] }];
  }
  // The keys of the service are for versions without their own.
  const general = withKeys('turnstile', turnstile, domains.length > 0 ? {} : shared);
  if (general.length > 0 || domains.length === 0) return general;
  return [{ name: 'turnstile', site_key, secret_key: undefined, hostnames }];
}

function isWithin(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`);
}

/** Returns the client's response and its provider; undefined if no provider of the version has one. */
export function chooseResponse(
  providers: readonly Provider[],
  captcha: Captcha,
): { provider: Provider; client_response: string } | undefined {
  for (const provider of providers) {
    const response = captcha[provider.name];
    if (response !== undefined) return { provider, client_response: response.client_response };
  }
  return undefined;
}

/**
 * Returns what a client needs to show a captcha, as `metadata` of the refusal: the first widget, and the proof of work
 * if there is one.
 */
export function metadataOf(providers: readonly Provider[], challenge_url: string): Record<string, unknown> {
  const widget = providers.find((provider) => provider.name !== 'pow');
  const has_work = providers.some(({ name }) => name === 'pow');
  const keys = widget?.site_key === undefined ? {} : { site_key: widget.site_key };
  return {
    // Older clients read `site_id` (specification: Errors).
    ...(widget?.name === 'hcaptcha' ? { hcaptcha: { site_id: widget.site_key, ...keys } } : {}),
    ...(widget?.name === 'turnstile' ? { turnstile: keys } : {}),
    ...(has_work ? { pow: { challenge_url } } : {}),
  };
}

/** The result of checking a captcha. */
export type Verdict =
  | { is: 'solved' }
  | { is: 'refused'; reasons: string[] }
  /** The provider gave no verdict. `is_down`: by its own fault, which no client can cause. */
  | { is: 'unavailable'; reasons: string[]; is_down: boolean };

/**
 * Keys that the providers publish for testing. Every client solves their captchas, always with the same response and on
 * another host (https://docs.hcaptcha.com/#integration-testing-test-keys,
 * https://developers.cloudflare.com/turnstile/troubleshooting/testing/).
 */
const TEST_SECRETS = new Set([
  '0x0000000000000000000000000000000000000000',
  '1x0000000000000000000000000000000AA',
  '2x0000000000000000000000000000000AA',
  '3x0000000000000000000000000000000AA',
]);

export function isTestKey({ secret_key }: Pick<Widget, 'secret_key'>): boolean {
  return secret_key !== undefined && TEST_SECRETS.has(secret_key);
}

/** Builds the form of a request to a provider. Both use the same names; only Turnstile has an idempotency key. */
export function siteverifyForm(
  { name, site_key }: Widget,
  sent: { secret_key: string; client_response: string; address: string; idempotency_key: string },
): URLSearchParams {
  return new URLSearchParams({
    secret: sent.secret_key,
    response: sent.client_response,
    ...(sent.address === '' ? {} : { remoteip: sent.address }),
    ...(name === 'hcaptcha' && site_key !== undefined ? { sitekey: site_key } : {}),
    ...(name === 'turnstile' ? { idempotency_key: sent.idempotency_key } : {}),
  });
}

/** Returns what developers may see of a form: the names, and the public key of the site. */
export function describeForm(form: URLSearchParams): Record<string, string> {
  return withoutValues(Object.fromEntries(form), ['sitekey']);
}

/** Members of a provider's answer that developers see. Enterprise accounts get more, for example scores. */
const SHOWN_OF_ANSWER = ['success', 'hostname', 'challenge_ts', 'sitekey', 'action'];
const SHOWN_TEXT_MAX = 256;

/** Returns what developers see of a provider's answer, which is not trusted. */
export function describeAnswer(body: unknown): Record<string, unknown> {
  if (typeof body !== 'object' || body === null) return {};
  const shown = Object.entries(body).filter(
    ([name, value]) => SHOWN_OF_ANSWER.includes(name) && (typeof value === 'boolean' || typeof value === 'string'),
  );
  const cut = shown.map(([name, value]) => [name, typeof value === 'string' ? cutText(value, SHOWN_TEXT_MAX) : value]);
  const codes = readCodes((body as Record<string, unknown>)['error-codes']);
  return { ...Object.fromEntries(cut), ...(codes.length > 0 && { 'error-codes': codes }) };
}

/** Codes by which a provider rejects the keys, and those by which it rejects only the captcha. */
const KEY_FAULTS = ['missing-input-secret', 'invalid-input-secret', 'sitekey-secret-mismatch'];
const CAPTCHA_FAULTS = ['missing-input-response', 'invalid-input-response', 'invalid-or-already-seen-response'];

/** Returns whether a provider accepts the keys, by its verdict about any captcha; undefined if it does not say. */
export function areKeysAccepted(verdict: Verdict): boolean | undefined {
  if (verdict.is === 'solved') return true;
  if (verdict.reasons.some((reason) => KEY_FAULTS.includes(reason))) return false;
  return verdict.reasons.some((reason) => CAPTCHA_FAULTS.includes(reason)) ? true : undefined;
}

/** Codes by which a provider reports its own failure. */
const PROVIDER_FAULTS = ['internal-error'];

/** Reads the answer of a provider. `body`: undefined if it is not JSON. */
export function readVerdict(widget: Widget, { status, body }: { status: number; body: unknown }): Verdict {
  const answer = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  const codes = readCodes(answer['error-codes']);
  if (answer.success === true && status >= 200 && status <= 299) return checkSite(widget, answer);
  if (answer.success === false && status < 500 && !codes.some((code) => PROVIDER_FAULTS.includes(code))) {
    return { is: 'refused', reasons: codes };
  }
  // A 4xx rejects the request or its rate. Clients can cause both, so it does not count as down.
  const is_down = status < 400 || status >= 500 || answer.success === false;
  return { is: 'unavailable', reasons: codes.length > 0 ? codes : [`status ${status}`], is_down };
}

/** Checks that a solved captcha belongs to this site and was solved on an allowed host. */
function checkSite(widget: Widget, { hostname, sitekey }: Record<string, unknown>): Verdict {
  if (isTestKey(widget)) return { is: 'solved' };
  if (typeof sitekey === 'string' && widget.site_key !== undefined && sitekey !== widget.site_key) {
    return { is: 'refused', reasons: ['other-sitekey'] };
  }
  const where = typeof hostname === 'string' ? hostname.toLowerCase() : undefined;
  const { hostnames } = widget;
  const is_right = hostnames.length === 0 || (where !== undefined && hostnames.some((name) => isWithin(where, name)));
  return is_right ? { is: 'solved' } : { is: 'refused', reasons: ['other-hostname'] };
}

/** Returns the first well-formed codes of a provider's answer, which is not trusted. */
function readCodes(codes: unknown): string[] {
  if (!Array.isArray(codes)) return [];
  return codes.filter((code): code is string => typeof code === 'string' && CODE.test(code)).slice(0, REASONS_MAX);
}
