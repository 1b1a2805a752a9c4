import { route } from '../../platform/http/route.ts';
import { inEachMinute } from '../../platform/limits/limit.ts';
import { nameAt, PREFIXES } from '../matchmaker-paths.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import type { Captcha } from './captcha.ts';
import * as wire from './wire.ts';

/** Limits challenges, each of which costs the service 1.6 ms. Requests for seats are limited further. */
const CHALLENGES = inEachMinute('captcha-challenges', 60);

/** Each asks the providers. */
const TRIALS = inEachMinute('captcha-trials', 30);

export function captchaRoutes(captcha: Captcha, namespaces: Pick<Namespaces, 'get'>) {
  return [...challengeRoutes(captcha), tryRoute(captcha, namespaces)];
}

/** The route by which developers try the keys of a version. */
function tryRoute(captcha: Captcha, namespaces: Pick<Namespaces, 'get'>) {
  return route(
    'POST',
    '/cloud/games/:game_id/namespaces/:namespace_id/matchmaker/captcha/try',
    {
      operation: 'tryCaptcha',
      summary:
        "Asks the captcha providers of the namespace's version about a captcha that was not solved, to see whether they answer and accept the keys.",
      allow: ['identity', 'cloud'],
      access: 'write',
      limit: TRIALS,
      body: wire.CaptchaTrial,
      response: wire.CaptchaTrialAnswer,
      errors: ['GAME_NOT_FOUND', 'GAME_ENVIRONMENT_NOT_FOUND'],
    },
    async ({ params, body: { origin }, address, deadline }) => {
      const namespace = await namespaces.get(params);
      return { providers: await captcha.tryProviders(namespace, { address, deadline, readOrigin: () => origin }) };
    },
  );
}

/** Routes by which players' clients get challenges. */
function challengeRoutes(captcha: Captcha) {
  return PREFIXES.map((prefix) =>
    route(
      'GET',
      `${prefix}/captcha/challenge`,
      {
        operation: nameAt(prefix, 'createCaptchaChallenge'),
        summary: 'Returns a proof of work, if the version uses it. Send its solution with find, join or create.',
        allow: ['public', 'development'],
        is_tokenless: true,
        limit: CHALLENGES,
        response: wire.Challenge,
        errors: ['NAMESPACE_NOT_FOUND', 'CAPTCHA_WORK_NOT_USED'],
      },
      async ({ caller }) => {
        // A challenge can be used once, so no cache may keep it.
        const headers = { 'cache-control': 'no-store' };
        return Response.json(await captcha.challenge(caller.namespace_id), { headers });
      },
    ),
  );
}
