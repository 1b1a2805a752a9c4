import { parseJson } from '../../platform/http/json.ts';
import { type Outbound, type OutboundAnswer, OutboundFailure } from '../../platform/outbound/outbound.ts';
import { type OutboundExchange, startTimer } from '../outbound-exchange.ts';
import { describeAnswer, describeForm, readVerdict, siteverifyForm, type Verdict, type Widget } from './rules.ts';

/** Answers have a few hundred bytes. */
const ANSWER_BYTES_MAX = 16_384;
const HEADERS = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' };
/** Turnstile's own limit (https://developers.cloudflare.com/turnstile/get-started/server-side-validation/). */
const TURNSTILE_RESPONSE_LENGTH_MAX = 2_048;
/** Turnstile accepts a captcha again under the same idempotency key. This UUID keeps Muster's keys apart from others. */
const IDEMPOTENCY_NAMESPACE = '6f2e6c9e-52c4-4b0e-9d0a-6b0c4a0e3f57';

/** The addresses of the providers, and the time limit of a check. */
export interface SiteverifySettings {
  hcaptcha_url: string;
  turnstile_url: string;
  captcha_timeout_ms: number;
}

export interface Siteverify extends SiteverifySettings {
  outbound: Pick<Outbound, 'post'>;
}

/** A solved captcha to check. */
interface CaptchaCheck {
  secret_key: string;
  client_response: string;
  captcha_id: string;
  /** The game of the client. */
  game_id: string;
  /** The address of the client. */
  address: string;
  signal: AbortSignal;
}

/**
 * The answer of a provider. `is_spent`: the provider may have used up the captcha, and would refuse it a second time.
 * `exchange`: the last request, if one was made.
 */
export type ProviderAnswer = Verdict & { is_spent: boolean; exchange?: OutboundExchange; cause?: unknown };

/**
 * Asks a provider whether a captcha was solved. Asks Turnstile a second time within the same time limit if its answer was
 * lost, because the idempotency key marks the repetition.
 */
export async function askProvider(
  siteverify: Siteverify,
  widget: Widget,
  check: CaptchaCheck,
): Promise<ProviderAnswer> {
  const { captcha_timeout_ms } = siteverify;
  if (widget.name === 'hcaptcha') return await askOnce(siteverify, widget, check, captcha_timeout_ms);
  if (check.client_response.length > TURNSTILE_RESPONSE_LENGTH_MAX) {
    return { is: 'refused', reasons: ['too-long'], is_spent: true };
  }
  const started = performance.now();
  const first = await askOnce(siteverify, widget, check, captcha_timeout_ms);
  const is_lost = first.is === 'unavailable' && first.is_spent && first.is_down;
  const rest_ms = Math.floor(captcha_timeout_ms - (performance.now() - started));
  const last = is_lost && rest_ms > 0 ? await askOnce(siteverify, widget, check, rest_ms) : first;
  return last.is === 'unavailable' ? { ...last, is_spent: false } : last;
}

async function askOnce(
  siteverify: Siteverify,
  widget: Widget,
  check: CaptchaCheck,
  timeout_ms: number,
): Promise<ProviderAnswer> {
  const idempotency_key = Bun.randomUUIDv5(check.captcha_id, IDEMPOTENCY_NAMESPACE);
  const { signal, game_id } = check;
  const url = widget.name === 'hcaptcha' ? siteverify.hcaptcha_url : siteverify.turnstile_url;
  const form = siteverifyForm(widget, { ...check, idempotency_key });
  const measure = startTimer();
  const toExchange = (): OutboundExchange => ({
    url,
    headers: HEADERS,
    body: describeForm(form),
    duration_ms: measure(),
  });
  try {
    const answer = await siteverify.outbound.post(url, {
      headers: HEADERS,
      body: form.toString(),
      timeout_ms,
      answer_bytes_max: ANSWER_BYTES_MAX,
      signal,
      // The operator chose this target, not a developer.
      trusts_target: true,
      // A game with many captchas must not delay those of others, however many namespaces it has.
      account: `game ${game_id}`,
    });
    const { status } = answer;
    const body = readJson(answer);
    const exchange = { ...toExchange(), status, answer: describeAnswer(body) };
    return { ...readVerdict(widget, { status, body }), is_spent: true, exchange };
  } catch (cause) {
    if (!(cause instanceof OutboundFailure)) throw cause;
    const { kind, was_sent: is_spent } = cause;
    // Clients can cause these failures, so they do not count as down.
    const is_down = kind !== 'too_busy' && kind !== 'cancelled' && kind !== 'bad_request';
    return { is: 'unavailable', reasons: [kind], is_down, is_spent, exchange: toExchange(), cause };
  }
}

function readJson({ text }: OutboundAnswer): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
