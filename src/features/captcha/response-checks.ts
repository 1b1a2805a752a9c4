import { after, CLOCK_SKEW_MAX_MS, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import type { ProofsOfWork } from './proof-of-work.ts';
import * as rules from './rules.ts';
import { askProvider, type ProviderAnswer, type Siteverify } from './siteverify.ts';
import * as store from './store.ts';
import type { ProviderTrial } from './wire.ts';

/** How long a used captcha is remembered: far longer than its provider accepts it (Turnstile 300 s, hCaptcha 120 s). */
const REMEMBERED_FOR_MS = 3_600_000;
/** No provider accepts this response, except for test keys. */
const UNSOLVED = 'muster-trial';

export interface ResponseCheckDependencies extends Siteverify {
  database: Database;
  clock: Clock;
  events: Events;
}

/** For whom a provider is asked. */
interface Asker {
  game_id: string;
  /** The address of the client. */
  address: string;
  /** Ends the check. */
  signal: AbortSignal;
}

/** The response of a client to a captcha. */
interface ResponseToCheck extends Asker {
  namespace_id: string;
  client_response: string;
}

/** The verdict about a captcha, and the request to its provider if one was sent. */
type CaptchaVerdict = rules.Verdict & Pick<ProviderAnswer, 'exchange'>;

const SOLVED: CaptchaVerdict = { is: 'solved' };
const USED: CaptchaVerdict = { is: 'refused', reasons: ['used-before'] };

/** Creates the checks of responses to captchas. Each captcha is accepted once. */
export function createResponseChecks(dependencies: ResponseCheckDependencies, proofs: ProofsOfWork) {
  const { database, clock, events } = dependencies;
  const { queries } = database;

  async function checkWork({ namespace_id, client_response }: ResponseToCheck): Promise<CaptchaVerdict> {
    const checked = await proofs.check(namespace_id, client_response);
    if ('problem' in checked) return { is: 'refused', reasons: [checked.problem] };
    const { challenge_id, expire_ts } = checked;
    return (await store.claimCaptcha(queries, challenge_id, after(expire_ts, CLOCK_SKEW_MAX_MS))) ? SOLVED : USED;
  }

  /**
   * Checks a captcha with its provider. Claims it before sending it, so that of concurrent requests with one captcha
   * only one passes.
   */
  async function checkWidget(
    widget: rules.Widget,
    { namespace_id, ...response }: ResponseToCheck,
  ): Promise<CaptchaVerdict> {
    const { secret_key } = widget;
    if (secret_key === undefined) return { is: 'refused', reasons: ['unknown-domain'] };
    const captcha_id = digest([widget.name, secret_key, response.client_response]);
    // A test key has only one captcha, which all clients send.
    const is_reusable = rules.isTestKey(widget);
    const expire_ts = after(clock.now(), REMEMBERED_FOR_MS);
    if (!is_reusable && !(await store.claimCaptcha(queries, captcha_id, expire_ts))) return USED;
    const outcome = await askProvider(dependencies, widget, { ...response, secret_key, captcha_id });
    if (outcome.is === 'unavailable') {
      reportUnchecked(widget.name, namespace_id, outcome);
      if (!outcome.is_spent) await store.releaseCaptcha(queries, captcha_id);
    }
    return outcome;
  }

  function reportUnchecked(
    provider: string,
    namespace_id: string,
    outcome: ProviderAnswer & { is: 'unavailable' },
  ): void {
    const { reasons, ...failure } = outcome;
    if (reasons.includes('cancelled')) return;
    const cause = 'cause' in failure ? { cause: failure.cause } : {};
    events.emit({ event: 'captcha_not_checked', provider, namespace_id, reasons, ...cause });
  }

  return {
    /** Returns the verdict about a response. */
    checkResponse: (provider: rules.Provider, response: ResponseToCheck): Promise<CaptchaVerdict> =>
      provider.name === 'pow' ? checkWork(response) : checkWidget(provider, response),
    /** Asks a provider about a captcha that was not solved, to see whether it answers and accepts the keys. */
    async tryProvider(provider: rules.Provider, asker: Asker): Promise<ProviderTrial> {
      if (provider.name === 'pow') return { provider: 'pow', are_keys_accepted: true, reasons: [] };
      const { name, secret_key } = provider;
      if (secret_key === undefined) return { provider: name, are_keys_accepted: false, reasons: ['unknown-domain'] };
      const captcha_id = crypto.randomUUID();
      const unsolved = { ...asker, secret_key, client_response: UNSOLVED, captcha_id };
      const outcome = await askProvider(dependencies, provider, unsolved);
      const are_keys_accepted = rules.areKeysAccepted(outcome);
      return {
        provider: name,
        ...(are_keys_accepted !== undefined && { are_keys_accepted }),
        reasons: outcome.is === 'solved' ? [] : outcome.reasons,
        ...(outcome.exchange && { exchange: outcome.exchange }),
      };
    },
  };
}

/**
 * Identifies a captcha without revealing it. Games with the same keys get the same id, because the provider accepts a captcha
 * only once for these keys.
 */
function digest(parts: string[]): string {
  return new Bun.CryptoHasher('sha256').update(parts.join('\0')).digest('base64url');
}
