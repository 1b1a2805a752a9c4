import { type CaptchaDependencies, createCaptcha, type RequestToCheck } from '../../../src/features/captcha/captcha.ts';
import { createProofsOfWork } from '../../../src/features/captcha/proof-of-work.ts';
import type { CaptchaDecision } from '../../../src/features/captcha/wire.ts';
import type { CaptchaConfig } from '../../../src/features/versions/config.ts';
import { type DatabaseAddress, openDatabase } from '../../../src/platform/database/database.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { createOutbound } from '../../../src/platform/outbound/outbound.ts';
import { loadKey } from '../../../src/platform/tokens/keys.ts';
import type { createTestClock } from '../clock.ts';
import type { CaptchaProvider } from './captcha-provider.ts';

const POOL = 4;
const HERE = '203.0.113.7';
export const PUBLIC_URL = 'https://play.example.com';

/** The outcome of a request: the decision, and the refusal if there is one. */
export interface CheckOutcome {
  decision: CaptchaDecision | undefined;
  error: ServiceError | undefined;
}

interface CaptchaChecksOptions {
  database_address: DatabaseAddress;
  clock: ReturnType<typeof createTestClock>;
  provider: CaptchaProvider;
  more?: Partial<CaptchaDependencies>;
}

export type CaptchaChecks = Awaited<ReturnType<typeof openCaptchaChecks>>;

/**
 * Opens the captcha check of one process, on a real database, with a provider that it reaches over a real connection. Tests
 * give the configuration of the version with each request.
 */
export async function openCaptchaChecks({ database_address, clock, provider, more = {} }: CaptchaChecksOptions) {
  const database = openDatabase(database_address, POOL);
  const events: ServiceEvent[] = [];
  const configs = new Map<string, CaptchaConfig>();
  const key = await loadKey(database.queries, clock, 'captcha');
  const proofs = createProofsOfWork({ clock, key });
  const captcha = createCaptcha({
    database,
    clock,
    key,
    events: { emit: (event) => void events.push(event) },
    outbound: createOutbound({ allowed_private: [] }),
    captcha_timeout_ms: 5_000,
    public_url: PUBLIC_URL,
    hcaptcha_url: provider.hcaptcha,
    turnstile_url: provider.turnstile,
    captcha_is_open_when_down: false,
    shared_captcha_keys: {},
    namespaces: { find: async () => undefined },
    versions: { captcha: async ({ version_id }) => configs.get(version_id) },
    ...more,
  });
  return {
    captcha,
    proofs,
    database,
    events,
    /** Checks a request of a client to a namespace whose version has this configuration, by default of a game of its own. */
    async check(
      {
        game_id = crypto.randomUUID(),
        namespace_id,
        config,
      }: { game_id?: string; namespace_id: string; config: CaptchaConfig },
      visitor: Partial<RequestToCheck> = {},
    ): Promise<CheckOutcome> {
      const version_id = crypto.randomUUID();
      configs.set(version_id, config);
      const namespace = { game_id, namespace_id, version_id };
      const deadline = { signal: new AbortController().signal };
      const request = { address: HERE, readOrigin: () => undefined, captcha: undefined, deadline };
      let decision: CaptchaDecision | undefined;
      const note = (decided: CaptchaDecision) => {
        decision = decided;
      };
      try {
        await captcha.admit(namespace, { ...request, ...visitor }, note);
        return { decision, error: undefined };
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        return { decision, error };
      }
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

/** Returns the decision, such as "solved", or the code of the refusal. */
export function outcomeOfCheck({ decision, error }: CheckOutcome): string {
  return error?.code ?? decision?.decision ?? 'nothing was decided';
}
