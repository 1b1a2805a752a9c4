import type { JWK } from 'jose';
import { after } from '../../platform/clock.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { RequestDeadline } from '../../platform/http/request-deadline.ts';
import { startDeletingOld } from '../../platform/loop.ts';
import { type MaybePromise, whenKnown } from '../../platform/maybe-promise.ts';
import { countingKeyOf } from '../../platform/networks.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import type { CaptchaConfig, Versions } from '../versions/versions.ts';
import { createProofsOfWork } from './proof-of-work.ts';
import { createResponseChecks, type ResponseCheckDependencies } from './response-checks.ts';
import * as rules from './rules.ts';
import type { SiteverifySettings } from './siteverify.ts';
import * as store from './store.ts';
import {
  type CaptchaDecision,
  type Challenge,
  PROVIDERS,
  type ProviderTrial,
  type Captcha as SentCaptcha,
} from './wire.ts';

export type { SharedKeys } from './rules.ts';

/** The reason if neither the version nor the service has keys of a provider. */
const NO_KEYS = 'no-keys';
const CHALLENGE_PATH = '/matchmaker/captcha/challenge';

interface CaptchaSettings extends SiteverifySettings {
  shared_captcha_keys: rules.SharedKeys;
  /** Whether requests pass while a provider is unavailable. */
  captcha_is_open_when_down: boolean;
  public_url: string;
}

export interface CaptchaDependencies extends CaptchaSettings, ResponseCheckDependencies {
  namespaces: Pick<Namespaces, 'find'>;
  versions: Pick<Versions, 'captcha'>;
  /** Signs challenges. A secret stored in the database. */
  key: JWK;
}

/** A namespace and the version it is on. */
export interface NamespaceVersion {
  game_id: string;
  namespace_id: string;
  version_id: string;
}

/** The parts of a request for seats that the check of its captcha needs. */
export interface RequestToCheck {
  /** The address of the client. */
  address: string;
  /** Returns the header Origin, which browsers send. */
  readOrigin(): string | undefined;
  captcha: SentCaptcha | undefined;
  /** Ends the check when the request ends. */
  deadline: Pick<RequestDeadline, 'signal'>;
}

export type Captcha = ReturnType<typeof createCaptcha>;

/** Creates the captcha check of requests for seats, for versions that ask for it. */
export function createCaptcha(dependencies: CaptchaDependencies) {
  const { database, clock, events, namespaces, versions } = dependencies;
  const { shared_captcha_keys, captcha_is_open_when_down, public_url } = dependencies;
  const { queries } = database;
  const proofs = createProofsOfWork(dependencies);
  const { checkResponse, tryProvider } = createResponseChecks(dependencies, proofs);

  /**
   * Decides about a request without a captcha. It passes if a captcha was solved from the same address shortly before.
   */
  async function decideWithoutCaptcha(
    config: CaptchaConfig,
    { client, providers, metadata }: CaptchaContext,
  ): Promise<CheckResult> {
    const { requests_before_reverify: requests_max, verification_ttl } = config;
    const solved_after = after(clock.now(), -verification_ttl);
    if (await store.countRequest(queries, client, { requests_max, solved_after })) {
      return { recorded: { decision: 'solved_before' } };
    }
    if (providers.length === 0) return noKeys();
    const refusal = new ServiceError('CAPTCHA_CAPTCHA_REQUIRED', {}, { metadata });
    return { recorded: { decision: 'required' }, refusal };
  }

  async function decideWithCaptcha(
    config: CaptchaConfig,
    { client, game_id, providers, metadata }: CaptchaContext,
    request: RequestToCheck & { captcha: SentCaptcha },
  ): Promise<CheckResult> {
    if (providers.length === 0) return noKeys();
    const refuse = (reason: string) => new ServiceError('CAPTCHA_CAPTCHA_FAILED', { reason }, { metadata });
    const chosen = rules.chooseResponse(providers, request.captcha);
    if (!chosen) {
      const refusal = refuse(`this game accepts captchas of ${providers.map(({ name }) => name).join(', ')}`);
      return { recorded: { decision: 'refused', reasons: ['other-provider'] }, refusal };
    }
    const { provider, client_response } = chosen;
    const { namespace_id } = client;
    const { address, deadline } = request;
    const response = { game_id, namespace_id, client_response, address, signal: deadline.signal };
    const verdict = await checkResponse(provider, response);
    const by = { provider: provider.name, ...(verdict.exchange && { exchange: verdict.exchange }) };
    if (verdict.is === 'solved') {
      const verify_ts = clock.now();
      const expire_ts = after(verify_ts, config.verification_ttl);
      await store.openWindow(queries, client, { verify_ts, expire_ts });
      return { recorded: { decision: 'solved', ...by } };
    }
    const decided = { ...by, reasons: verdict.reasons };
    if (verdict.is === 'refused') {
      return { recorded: { ...decided, decision: 'refused' }, refusal: refuse(explain(verdict.reasons)) };
    }
    if (verdict.is_down && captcha_is_open_when_down) return { recorded: { ...decided, decision: 'let_through' } };
    return { recorded: { ...decided, decision: 'unavailable' }, refusal: providerUnavailable() };
  }

  async function check(
    config: CaptchaConfig,
    { game_id, namespace_id }: NamespaceVersion,
    request: RequestToCheck,
    record: (decision: CaptchaDecision) => void,
  ): Promise<void> {
    const { captcha, address } = request;
    const providers = rules.providersOf(config, shared_captcha_keys, request.readOrigin());
    const context = {
      client: { namespace_id, client: countingKeyOf(address) },
      game_id,
      providers,
      metadata: rules.metadataOf(providers, `${public_url}${CHALLENGE_PATH}`),
    };
    const { recorded, refusal } =
      captcha === undefined
        ? await decideWithoutCaptcha(config, context)
        : await decideWithCaptcha(config, context, { ...request, captcha });
    record(recorded);
    if (refusal) throw refusal;
  }

  return {
    /** Returns whether a version requires a captcha for requests for seats. */
    isRequired: (namespace: NamespaceVersion): MaybePromise<boolean> =>
      whenKnown(versions.captcha(namespace), (config) => config !== undefined),
    /**
     * Admits a request for seats, or throws CAPTCHA_CAPTCHA_REQUIRED (metadata describes the captcha),
     * CAPTCHA_CAPTCHA_FAILED or CAPTCHA_CAPTCHA_UNAVAILABLE. Calls `record` with the decision first, unless the version
     * asks for no captcha.
     */
    async admit(
      namespace: NamespaceVersion,
      request: RequestToCheck,
      record: (decision: CaptchaDecision) => void,
    ): Promise<void> {
      const config = await versions.captcha(namespace);
      if (config) await check(config, namespace, request, record);
    },
    /** Returns a proof of work to solve. Throws NAMESPACE_NOT_FOUND or CAPTCHA_WORK_NOT_USED. */
    async challenge(namespace_id: string): Promise<Challenge> {
      const namespace = await namespaces.find(namespace_id);
      if (!namespace) throw new ServiceError('NAMESPACE_NOT_FOUND', {});
      const config = await versions.captcha(namespace);
      const pow = config && rules.providersOf(config, {}, undefined).find((one) => one.name === 'pow');
      if (!pow) throw new ServiceError('CAPTCHA_WORK_NOT_USED', {});
      return await proofs.challenge(namespace_id, pow.difficulty);
    },
    /**
     * Asks each provider of a version, if there are keys for it, about a captcha that was not solved, to see whether it
     * answers and accepts the keys. Returns a verdict for each provider of the version; none if the version requires no captcha.
     */
    async tryProviders(
      namespace: NamespaceVersion,
      request: Omit<RequestToCheck, 'captcha'>,
    ): Promise<ProviderTrial[]> {
      const config = await versions.captcha(namespace);
      if (!config) return [];
      const { address, deadline } = request;
      const asked = { game_id: namespace.game_id, address, signal: deadline.signal };
      const with_keys = rules.providersOf(config, shared_captcha_keys, request.readOrigin());
      const configured = PROVIDERS.filter((name) => config[name] !== undefined);
      return await Promise.all(
        configured.map((name) => {
          const provider = with_keys.find((one) => one.name === name);
          return provider ? tryProvider(provider, asked) : withoutKeys(name);
        }),
      );
    },
    /** Starts the loop that deletes expired windows and captchas. */
    startDeletingOld(signal: AbortSignal): { stopped: Promise<void> } {
      const deleteOld = () => store.deleteExpired(queries, clock.now());
      return startDeletingOld({ name: 'old-captchas', signal, events, deleteOld });
    },
  };
}

/** The context of a check: the client, its game, the providers of the version, and the metadata of a refusal. */
interface CaptchaContext {
  client: store.NamespaceClient;
  game_id: string;
  providers: rules.Provider[];
  metadata: Record<string, unknown>;
}

/** The decision about a request, as it is recorded, with its error if it is refused. */
interface CheckResult {
  recorded: CaptchaDecision;
  refusal?: ServiceError;
}

const providerUnavailable = () => new ServiceError('CAPTCHA_CAPTCHA_UNAVAILABLE', {});

/** The trial of a provider for which neither the version nor the service has keys. */
const withoutKeys = (provider: ProviderTrial['provider']): ProviderTrial => ({
  provider,
  are_keys_accepted: false,
  reasons: [NO_KEYS],
});

/** The decision while no provider of the version has keys, its own or those of the service. */
const noKeys = (): CheckResult => ({
  recorded: { decision: 'unavailable', reasons: [NO_KEYS] },
  refusal: providerUnavailable(),
});

const EXPLANATIONS = new Map([
  ['used-before', 'it was used before'],
  ['other-hostname', 'it was solved on another site'],
  ['other-sitekey', 'it belongs to another site'],
  ['other-namespace', 'its challenge belongs to another game'],
  ['unknown-domain', 'the game has no keys for the domain of the page that sent it'],
  ['too-long', 'it is longer than any captcha of its provider'],
  ['unreadable', 'it is not a solution in base64'],
  ['expired', 'its challenge has expired'],
  ['wrong', 'it does not solve its challenge'],
  ['invalid-signature', 'its challenge was changed, or is of another service'],
]);

/** Explains a refusal to the caller. Codes that only the provider knows are not repeated. */
function explain(reasons: string[]): string {
  return (
    reasons.map((reason) => EXPLANATIONS.get(reason)).find((text) => text !== undefined) ??
    'the provider did not accept it'
  );
}
