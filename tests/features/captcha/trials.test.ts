import { describe, expect, test } from 'bun:test';
import { areKeysAccepted, describeAnswer } from '../../../src/features/captcha/rules.ts';
import {
  type CaptchaGame,
  HCAPTCHA,
  shareCaptchaService,
  solved,
  TURNSTILE,
} from '../../support/captcha/captcha-game.ts';
import { makeControlledGame } from '../../support/game-server.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { outcomeOf } from '../../support/suite.ts';

const CANARY = /canary-of/;
const service = shareCaptchaService();
function tryIt(
  { game_id, namespace_id, cloud_token }: CaptchaGame,
  body: object = {},
  token = cloud_token,
  { api }: Pick<TestService, 'api'> = service.muster,
) {
  return api.post(`/cloud/games/${game_id}/namespaces/${namespace_id}/matchmaker/captcha/try`, token, body);
}

describe('captcha trials', () => {
  test('ask every provider of the version once, and show the exchange without secrets', async () => {
    const game = await service.makeGame({ hcaptcha: HCAPTCHA, turnstile: TURNSTILE, pow: {} });
    const { body } = await tryIt(game);
    expect(body.providers).toMatchObject([
      {
        provider: 'hcaptcha',
        are_keys_accepted: true,
        reasons: ['invalid-input-response'],
        exchange: {
          url: service.provider.hcaptcha,
          body: { secret: '(left out)', response: '(left out)', sitekey: 'h-site' },
          status: 200,
          answer: { success: false, 'error-codes': ['invalid-input-response'] },
        },
      },
      { provider: 'turnstile', are_keys_accepted: true, exchange: { url: service.provider.turnstile } },
      { provider: 'pow', are_keys_accepted: true, reasons: [] },
    ]);
    expect(JSON.stringify(body)).not.toMatch(CANARY);
    expect(outcomeOf(await service.send(game, 'find'))).toBe('403 CAPTCHA_CAPTCHA_REQUIRED');
  });

  test('choose the keys by the page that the caller names', async () => {
    const secret_key = `${TURNSTILE.secret_key}-of-the-domain`;
    const game = await service.makeGame({ turnstile: { domains: { 'play.example.com': { secret_key } } } });
    const { body } = await tryIt(game, { origin: 'https://eu.play.example.com' });
    expect(body.providers).toMatchObject([{ provider: 'turnstile', are_keys_accepted: true }]);
    expect(service.provider.requestsOf('muster-trial').at(-1)?.form.secret).toBe(secret_key);
    expect(JSON.stringify(body)).not.toMatch(CANARY);
  });

  test('of a version without captcha have no provider; those of another tenant are refused', async () => {
    const game = await makeControlledGame(service.muster);
    expect((await tryIt(game)).body.providers).toEqual([]);
    const other = await makeControlledGame(service.muster);
    expect(outcomeOf(await tryIt(game, {}, other.cloud_token))).toStartWith('40');
  });

  test('of providers without keys say so', async () => {
    const game = await service.makeGame({ turnstile: {}, pow: {} });
    await using without_keys = await openTestService(service.provider.settings, { database_of: service.muster });
    const { body } = await tryIt(game, {}, game.cloud_token, without_keys);
    expect(body.providers).toEqual([
      { provider: 'turnstile', are_keys_accepted: false, reasons: ['no-keys'] },
      { provider: 'pow', are_keys_accepted: true, reasons: [] },
    ]);
  }, 300_000);

  test('a receipt has the exchange with the provider', async () => {
    const game = await service.makeGame({ hcaptcha: HCAPTCHA });
    const refused = await service.send(game, 'find', solved(service.captcha('bad-secret')));
    const receipt = await service.receiptOf(game, refused);
    expect(receipt.captcha).toMatchObject({
      decision: 'refused',
      exchange: { status: 200, answer: { 'error-codes': ['invalid-input-secret'] } },
    });
    const strange = await service.send(game, 'find', solved(service.captcha('strange-codes')));
    expect((await service.receiptOf(game, strange)).captcha.exchange.answer['error-codes']).toEqual(['fine-code']);
    expect(JSON.stringify(receipt)).not.toMatch(CANARY);
  });

  test('keys are accepted, rejected, or the provider did not say', () => {
    const refused = (...reasons: string[]) => areKeysAccepted({ is: 'refused', reasons });
    expect(areKeysAccepted({ is: 'solved' })).toBe(true);
    expect(refused('invalid-input-response')).toBe(true);
    expect(refused('invalid-input-response', 'invalid-input-secret')).toBe(false);
    expect(refused('bad-request')).toBeUndefined();
    expect(areKeysAccepted({ is: 'unavailable', reasons: ['timeout'], is_down: true })).toBeUndefined();
  });

  test('what is shown of an answer is short, and only what it may say', () => {
    const answer = { success: true, hostname: `a\0${'x'.repeat(1_000)}`, score: 0.9, challenge_ts: { deep: [] } };
    const shown = describeAnswer(answer);
    expect(Object.keys(shown)).toEqual(['success', 'hostname']);
    expect(shown.hostname).toHaveLength(256);
    for (const nothing of [undefined, null, 'text', 7]) expect(describeAnswer(nothing)).toEqual({});
  });
});
