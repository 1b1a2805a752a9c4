import { describe, expect, test } from 'bun:test';
import type { Answer } from '../../support/api.ts';
import {
  HCAPTCHA,
  OUR_SECRET,
  shareCaptchaService,
  solved,
  TIMES,
  TURNSTILE,
} from '../../support/captcha/captcha-game.ts';
import { openTestService } from '../../support/service.ts';
import { outcomeOf } from '../../support/suite.ts';

const CANARY = /canary-of/;
const service = shareCaptchaService();

describe('captcha keys', () => {
  test('of the service apply where a version has none; bootstrap shows the one for pages', async () => {
    const game = await service.makeGame({ turnstile: {} });
    const refused = await service.send(game, 'find');
    expect(refused.body.metadata).toEqual({ turnstile: { site_key: 'our-site' } });
    const once = service.captcha();
    expect(outcomeOf(await service.send(game, 'find', solved(once, 'turnstile')))).toBe('200');
    expect(service.provider.requestsOf(once)[0]?.form.secret).toBe(OUR_SECRET);
    expect((await service.muster.api.ok('GET', '/cloud/bootstrap')).captcha).toEqual({
      turnstile: { site_key: 'our-site' },
    });
  });

  test('that the service no longer has leave its games without a captcha to ask for, and that is not the fault of players', async () => {
    const game = await service.makeGame({ turnstile: {} });
    await using without_keys = await openTestService(service.provider.settings, { database_of: service.muster });
    for (const body of [{}, solved(service.captcha(), 'turnstile')]) {
      const answer = await service.send(game, 'find', body, without_keys);
      expect(outcomeOf(answer)).toBe('503 CAPTCHA_CAPTCHA_UNAVAILABLE');
      const { captcha } = await service.receiptOf(game, answer, without_keys);
      expect(captcha).toMatchObject({ decision: 'unavailable', reasons: ['no-keys'] });
    }
  }, 300_000);

  test('that are secret are in no answer and in no log', async () => {
    const game = await service.makeGame({ hcaptcha: HCAPTCHA, turnstile: TURNSTILE });
    const { game_id, namespace_id, version_id, cloud_token: token } = game;
    const version = await service.muster.api.get(`/cloud/games/${game_id}/versions/${version_id}`, token);
    const { captcha: kept } = version.body.version.config.matchmaker;
    expect(kept.hcaptcha).toEqual({ site_key: 'h-site', secret_key: '' });
    const again = { display_name: 'Again', config: version.body.version.config };
    const copied = await service.muster.api.post(`/cloud/games/${game_id}/versions`, token, again);
    expect(copied.body.metadata.errors.map(({ path }: { path: string[] }) => path.slice(-2).join('.'))).toEqual([
      'secret-key.too-short',
      'secret-key.too-short',
    ]);
    const answers = [version, copied, await service.muster.api.get(`/cloud/games/${game_id}`, token)];
    const wrong = { hcaptcha: { ...HCAPTCHA, secret_key: `${HCAPTCHA.secret_key}${'x'.repeat(60)}` }, ...TIMES };
    const config = { matchmaker: { ...game.matchmaker, captcha: wrong } };
    answers.push(
      await service.muster.api.post(`/cloud/games/${game_id}/versions`, token, { display_name: 'Wrong', config }),
    );
    for (const behavior of ['ok', 'wrong', '500', 'html', 'bad-secret', 'a reset']) {
      const answer = await service.send(game, 'find', solved(service.captcha(behavior)));
      answers.push(answer, (await service.receiptOf(game, answer)) as Answer);
    }
    const receipts = `/cloud/games/${game_id}/namespaces/${namespace_id}/matchmaker/receipts`;
    answers.push(await service.muster.api.get(receipts, token));
    expect(JSON.stringify(answers.map(({ body, ...rest }) => body ?? rest))).not.toMatch(CANARY);
    expect(Bun.inspect(service.muster.events, { depth: 20 })).not.toMatch(CANARY);
  });
});
