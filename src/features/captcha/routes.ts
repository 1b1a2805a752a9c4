import { route } from '../../platform/http/route.ts';
import { inOneMinute } from '../../platform/limits/limit.ts';
import type { Captcha } from './captcha.ts';
import * as wire from './wire.ts';

/** Limits challenges, each of which costs the service 1.6 ms. Requests for seats are limited further. */
const CHALLENGES = inOneMinute('captcha-challenges', 60);

/** The two paths of the matchmaker. */
const PREFIXES = ['/matchmaker', '/v1'] as const;

export function captchaRoutes(captcha: Captcha) {
  return PREFIXES.map((prefix) =>
    route(
      'GET',
      `${prefix}/captcha/challenge`,
      {
        operation: prefix === '/v1' ? 'createCaptchaChallengeV1' : 'createCaptchaChallenge',
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
