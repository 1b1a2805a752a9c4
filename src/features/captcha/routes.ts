import { route } from '../../platform/http/route.ts';
import { inOneMinute } from '../../platform/limits/limit.ts';
import type { Captcha } from './captcha.ts';
import * as wire from './wire.ts';

/** Each takes us 1.6 ms of a core. Whoever solves them asks for a seat then, which is limited to less. */
const CHALLENGES = inOneMinute('captcha-challenges', 60);

/** The matchmaker's two addresses. */
const PREFIXES = ['/matchmaker', '/v1'] as const;

export function captchaRoutes(captcha: Captcha) {
  return PREFIXES.map((prefix) =>
    route(
      'GET',
      `${prefix}/captcha/challenge`,
      {
        operation: prefix === '/v1' ? 'createCaptchaChallengeV1' : 'createCaptchaChallenge',
        summary: 'A proof of work, where the version asks for one. Its solution comes with find, join or create.',
        allow: ['public', 'development'],
        is_tokenless: true,
        limit: CHALLENGES,
        response: wire.Challenge,
        errors: ['NAMESPACE_NOT_FOUND', 'CAPTCHA_WORK_NOT_USED'],
      },
      async ({ caller }) => {
        // Each is good once: nobody in between is to keep it for the next one.
        const headers = { 'cache-control': 'no-store' };
        return Response.json(await captcha.challenge(caller.namespace_id), { headers });
      },
    ),
  );
}
