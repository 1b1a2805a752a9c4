import type { CaptchaConfig } from '../versions/versions.ts';
import type { Captcha } from './wire.ts';

/** Somebody else who tells whether a captcha was solved. */
export interface Widget {
  name: 'hcaptcha' | 'turnstile';
  /** Undefined where only the game's own pages know it (an older spelling). */
  site_key: string | undefined;
  /** Undefined when it cannot be told which of several it is. */
  secret_key: string | undefined;
  /** Where it may have been solved; empty: wherever the provider allows. */
  hostnames: readonly string[];
}

export interface ProofOfWork {
  name: 'pow';
  difficulty: number;
}

export type Provider = Widget | ProofOfWork;

/** Keys that the service has for versions without their own. */
export type SharedKeys = Partial<Record<Widget['name'], { site_key: string; secret_key: string }>>;

/** About 0.8 s of one core of 2024 (1.6 ms for a key). */
const DEFAULT_DIFFICULTY = 500;
const REASONS_MAX = 8;
const CODE = /^[\w-]{1,64}$/;

/**
 * Who may say that a captcha was solved, the one that clients are told of first. `origin`: the page that asks, if it is
 * one. A provider without keys of the version's or the service's is left out.
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

/** An older spelling has a secret key for each domain. A page of a domain's, or below it, is checked with that one's. */
function turnstileOf(
  turnstile: NonNullable<CaptchaConfig['turnstile']>,
  shared: SharedKeys,
  origin: string | undefined,
): Widget[] {
  const domains = Object.entries(turnstile.domains ?? {});
  const { site_key, hostnames = [] } = turnstile;
  const host = origin !== undefined && URL.canParse(origin) ? new URL(origin).hostname : undefined;
  const suiting = domains.filter(([domain]) => host !== undefined && isWithin(host, domain));
  const [chosen] = suiting.toSorted(([one], [other]) => other.length - one.length);
  if (chosen) {
    const [domain, { secret_key }] = chosen;
    return [{ name: 'turnstile', site_key, secret_key, hostnames: hostnames.length > 0 ? hostnames : [domain] }];
  }
  const general = withKeys('turnstile', turnstile, shared);
  if (general.length > 0 || domains.length === 0) return general;
  return [{ name: 'turnstile', site_key, secret_key: undefined, hostnames }];
}

/** Whether a host is a domain or below it. */
function isWithin(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`);
}

/** What was handed in, and to whom it belongs; undefined when it is for none of the providers. */
export function chooseAnswer(
  providers: readonly Provider[],
  captcha: Captcha,
): { provider: Provider; client_response: string } | undefined {
  for (const provider of providers) {
    const answer = captcha[provider.name];
    if (answer !== undefined) return { provider, client_response: answer.client_response };
  }
  return undefined;
}

/**
 * What a client needs to show a captcha, as `metadata` of the refusal (field-behaviour 5): of hCaptcha and Turnstile only
 * the first, and besides where there is a proof of work.
 */
export function metadataOf(providers: readonly Provider[], challenge_url: string): Record<string, unknown> {
  const widget = providers.find((provider) => provider.name !== 'pow');
  const has_work = providers.some(({ name }) => name === 'pow');
  const keys = widget?.site_key === undefined ? {} : { site_key: widget.site_key };
  return {
    // `site_id` is what older clients read (specification: Errors).
    ...(widget?.name === 'hcaptcha' ? { hcaptcha: { site_id: widget.site_key, ...keys } } : {}),
    ...(widget?.name === 'turnstile' ? { turnstile: keys } : {}),
    ...(has_work ? { pow: { challenge_url } } : {}),
  };
}

/** What became of a captcha that was handed in. */
export type Verdict =
  | { is: 'solved' }
  | { is: 'refused'; reasons: string[] }
  /** Nobody says yes or no. `is_down`: the provider is to blame, and nothing that a client could bring about. */
  | { is: 'unavailable'; reasons: string[]; is_down: boolean };

/**
 * Keys that the providers publish for trying things out. Their captchas are solved by everybody, always with the same
 * answer, and somewhere else (https://docs.hcaptcha.com/#integration-testing-test-keys,
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

/** The body of a request to the provider, as a form. Both take the same names; only Turnstile has an idempotency key. */
export function siteverifyForm(
  { name, site_key }: Widget,
  sent: { secret_key: string; client_response: string; address: string; idempotency_key: string },
): string {
  const form = new URLSearchParams({
    secret: sent.secret_key,
    response: sent.client_response,
    ...(sent.address === '' ? {} : { remoteip: sent.address }),
    ...(name === 'hcaptcha' && site_key !== undefined ? { sitekey: site_key } : {}),
    ...(name === 'turnstile' ? { idempotency_key: sent.idempotency_key } : {}),
  });
  return form.toString();
}

/** Codes by which a provider says that it could not look. */
const PROVIDER_FAULTS = ['internal-error'];

/** Reads what a provider answered. `said`: its body, when that is JSON. */
export function readVerdict(widget: Widget, { status, said }: { status: number; said: unknown }): Verdict {
  const answer = typeof said === 'object' && said !== null ? (said as Record<string, unknown>) : {};
  const codes = readCodes(answer['error-codes']);
  if (answer.success === true && status >= 200 && status <= 299) return checkPlace(widget, answer);
  if (answer.success === false && status < 500 && !codes.some((code) => PROVIDER_FAULTS.includes(code))) {
    return { is: 'refused', reasons: codes };
  }
  // By 4xx it does not want our request, or not so many: what is in them, and how many come, is the clients' to choose.
  const is_down = status < 400 || status >= 500 || answer.success === false;
  return { is: 'unavailable', reasons: codes.length > 0 ? codes : [`status ${status}`], is_down };
}

/** Whether a solved captcha is one of this site's, solved where it may be. */
function checkPlace(widget: Widget, { hostname, sitekey }: Record<string, unknown>): Verdict {
  if (isTestKey(widget)) return { is: 'solved' };
  if (typeof sitekey === 'string' && widget.site_key !== undefined && sitekey !== widget.site_key) {
    return { is: 'refused', reasons: ['other-sitekey'] };
  }
  const where = typeof hostname === 'string' ? hostname.toLowerCase() : undefined;
  const { hostnames } = widget;
  const is_right = hostnames.length === 0 || (where !== undefined && hostnames.some((name) => isWithin(where, name)));
  return is_right ? { is: 'solved' } : { is: 'refused', reasons: ['other-hostname'] };
}

/** What a stranger wrote is not repeated at any length. */
function readCodes(codes: unknown): string[] {
  if (!Array.isArray(codes)) return [];
  return codes.filter((code): code is string => typeof code === 'string' && CODE.test(code)).slice(0, REASONS_MAX);
}
