import { describe, expect, test } from 'bun:test';
import {
  BODIES,
  HCAPTCHA,
  MODE,
  shareCaptchaService,
  solved,
  TIMES,
  TURNSTILE,
} from '../../support/captcha/captcha-game.ts';
import { deploy, setLimits } from '../../support/game.ts';
import { makeControlledGame } from '../../support/game-server.ts';
import { makeFullGame, queueUp } from '../../support/lobbies/queue.ts';
import { openTestService } from '../../support/service.ts';
import { outcomeOf } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const service = shareCaptchaService();

describe('without a required captcha', () => {
  test('find, create and join are refused before anything is created, and the error says which captcha to show', async () => {
    const game = await service.makeGame({ hcaptcha: HCAPTCHA, turnstile: TURNSTILE });
    const { lobby } = (await service.send(game, 'find', solved(service.captcha()))).body;
    // Two more requests may pass after it.
    for (const kind of ['find', 'create'] as const) expect(outcomeOf(await service.send(game, kind))).toBe('200');
    const before = await service.inspector.lobbiesOf(game.namespace_id);
    for (const kind of ['find', 'create', 'join'] as const) {
      const refused = await service.send(game, kind, kind === 'join' ? { lobby_id: lobby.lobby_id } : {});
      expect(outcomeOf(refused)).toBe('403 CAPTCHA_CAPTCHA_REQUIRED');
      expect(refused.body.metadata).toEqual({ hcaptcha: { site_id: 'h-site', site_key: 'h-site' } });
      const receipt = await service.receiptOf(game, refused);
      expect(receipt.captcha).toEqual({ decision: 'required' });
      expect(receipt.outcome).toEqual({ code: 'CAPTCHA_CAPTCHA_REQUIRED' });
    }
    expect(await service.inspector.lobbiesOf(game.namespace_id)).toEqual(before);
    expect(before.reduce((sum, { player_count }) => sum + player_count, 0)).toBe(3);
  });

  test('captcha: an invalid request is refused before a captcha is required', async () => {
    const game = await service.makeGame({ hcaptcha: HCAPTCHA });
    const wrong = await service.send(game, 'find', { game_modes: ['other'] });
    expect(outcomeOf(wrong)).toBe('404 MATCHMAKER_GAME_MODE_NOT_FOUND');
    expect((await service.receiptOf(game, wrong)).captcha).toBeUndefined();
    expect(outcomeOf(await service.send(game, 'join'))).toBe('404 MATCHMAKER_LOBBY_NOT_FOUND');
  });
});

test('captcha: a waiting find needs one as soon as the namespace is on a version that requires it', async () => {
  // Each find has a game of its own, because one solved captcha admits other requests of its address for a while.
  const outcomes = [{}, solved(service.captcha())].map(async (body) => {
    const game = await makeFullGame(service.muster);
    const waiter = await queueUp(service.muster, game, body);
    await deploy(service.muster.api, game, { ...game.matchmaker, captcha: { ...TIMES, hcaptcha: HCAPTCHA } });
    await setLimits(service.muster.api, { ...game, token: game.cloud_token }, { lobby_count_max: 2, max_players: 8 });
    return outcomeOf(await waiter.answer);
  });
  expect(await Promise.all(outcomes)).toEqual(['403 CAPTCHA_CAPTCHA_REQUIRED', '200']);
});

describe('a request with a captcha', () => {
  test('is admitted to find, create and join, from either provider, and admits others of its address for a while', async () => {
    const game = await service.makeGame({ hcaptcha: HCAPTCHA, turnstile: TURNSTILE });
    const found = await service.send(game, 'find', solved(service.captcha()));
    expect(outcomeOf(found)).toBe('200');
    const receipt = await service.receiptOf(game, found);
    const { exchange, ...decided_by } = receipt.captcha;
    expect(decided_by).toEqual({ decision: 'solved', provider: 'hcaptcha' });
    expect(exchange).toMatchObject({ status: 200, answer: { success: true } });
    const { checked, captcha: settled, decided } = receipt.stages_ms;
    expect([checked, settled, decided]).toEqual([checked, settled, decided].toSorted((one, other) => one - other));
    expect(outcomeOf(await service.send(game, 'create', solved(service.captcha(), 'turnstile')))).toBe('200');
    const { lobby_id } = found.body.lobby;
    expect(outcomeOf(await service.send(game, 'join', { lobby_id, ...solved(service.captcha(), 'turnstile') }))).toBe(
      '200',
    );
    const next = await service.send(game, 'find');
    expect((await service.receiptOf(game, next)).captcha).toEqual({ decision: 'solved_before' });
    service.muster.clock.advance(TIMES.verification_ttl);
    expect(outcomeOf(await service.send(game, 'find'))).toBe('403 CAPTCHA_CAPTCHA_REQUIRED');
    expect(service.provider.requestsOf().slice(-1)[0]?.form.remoteip).toBe('127.0.0.1');
  });

  const REFUSED: [string, string][] = [
    ['wrong', '400 CAPTCHA_CAPTCHA_FAILED'],
    ['500', '503 CAPTCHA_CAPTCHA_UNAVAILABLE'],
  ];
  for (const [behavior, outcome] of REFUSED) {
    test(`that is refused (${behavior}) creates no lobby and no seat`, async () => {
      const game = await service.makeGame({ hcaptcha: HCAPTCHA });
      for (const kind of ['find', 'create'] as const) {
        const refused = await service.send(game, kind, solved(service.captcha(behavior)));
        expect(outcomeOf(refused)).toBe(outcome);
        const has_retry_time = refused.headers.has('retry-after');
        expect(has_retry_time).toBe(refused.status === 503);
        expect((await service.receiptOf(game, refused)).captcha).toMatchObject({ provider: 'hcaptcha' });
      }
      expect(await service.inspector.lobbiesOf(game.namespace_id)).toEqual([]);
      expect(await service.inspector.removeReasons(game.namespace_id)).toEqual([]);
    });
  }

  test('that cannot be checked is admitted if the operator says so; a wrong one is not', async () => {
    const settings = { ...service.provider.settings, MUSTER_DATACENTER: 'open', MUSTER_CAPTCHA_WHEN_DOWN: 'open' };
    await using open = await openTestService(settings, { database_of: service.muster });
    const game = await service.makeGame({ hcaptcha: HCAPTCHA });
    const let_in = await service.send(game, 'find', solved(service.captcha('500')), open);
    expect(outcomeOf(let_in)).toBe('200');
    const receipt = await service.receiptOf(game, let_in, open);
    const { exchange, ...decided_by } = receipt.captcha;
    expect(decided_by).toEqual({ decision: 'let_through', provider: 'hcaptcha', reasons: ['status 500'] });
    expect(exchange).toMatchObject({ status: 500 });
    expect(outcomeOf(await service.send(game, 'find', solved(service.captcha('wrong')), open))).toBe(
      '400 CAPTCHA_CAPTCHA_FAILED',
    );
    // An unchecked captcha admits only its own request.
    expect(outcomeOf(await service.send(game, 'find', {}, open))).toBe('403 CAPTCHA_CAPTCHA_REQUIRED');
  });

  test('is not checked if the version requires no captcha', async () => {
    const game = await makeControlledGame(service.muster, { game_modes: { default: MODE } });
    const once = service.captcha('wrong');
    expect(outcomeOf(await service.send(game, 'find', solved(once)))).toBe('200');
    expect(service.provider.requestsOf(once)).toEqual([]);
    expect(outcomeOf(await service.send(game, 'find', { captcha: {} }))).toBe('200');
  });

  test('is admitted once of 200 concurrent requests with one captcha on two machines', async () => {
    const game = await service.makeGame({ hcaptcha: HCAPTCHA, requests_before_reverify: 0 });
    const once = service.captcha();
    const finds = Array.from({ length: 200 }, (_, index) =>
      service.send(game, 'find', solved(once), index % 2 === 0 ? service.muster : service.second),
    );
    const outcomes = (await Promise.all(finds)).map(outcomeOf);
    expect(outcomes.filter((outcome) => outcome === '200').length).toBe(1);
    expect(outcomes.filter((outcome) => outcome === '400 CAPTCHA_CAPTCHA_FAILED').length).toBe(199);
    const lobbies = await service.inspector.lobbiesOf(game.namespace_id);
    expect(lobbies.map(({ player_count }) => player_count)).toEqual([1]);
    expect(service.provider.requestsOf(once).length).toBe(1);
  });

  test('whose client goes while it is checked is no outage of the provider', async () => {
    const game = await service.makeGame({ hcaptcha: HCAPTCHA });
    // Another second, because each has a maximum of receipts.
    service.muster.clock.advance(1_000);
    const leaving = new AbortController();
    const once = service.captcha('silence');
    const request = { token: game.public_token, body: { ...BODIES.find, ...solved(once) }, signal: leaving.signal };
    const left = service.muster.api.call('POST', '/matchmaker/lobbies/find', request).catch(() => 'it has left');
    await waitFor(() => service.provider.requestsOf(once).length > 0, 'the request to the provider');
    leaving.abort();
    expect(await left).toBe('it has left');
    const { game_id, namespace_id, cloud_token: token } = game;
    const receipts = `/cloud/games/${game_id}/namespaces/${namespace_id}/matchmaker/receipts`;
    const receipt = await waitFor(
      async () => (await service.muster.api.ok('GET', receipts, { token })).receipts[0],
      'the receipt',
    );
    expect(receipt).toMatchObject({
      outcome: { code: 'API_CLIENT_GONE' },
      captcha: { decision: 'unavailable', reasons: ['cancelled'] },
    });
  });

  test('holds no seat and no database connection while its provider is slow', async () => {
    const game = await service.makeGame({ hcaptcha: HCAPTCHA });
    const leaving = new AbortController();
    const { signal } = leaving;
    // More than there are database connections.
    const waiting = Array.from({ length: 24 }, () => {
      const body = { ...BODIES.find, ...solved(service.captcha('silence')) };
      const request = { token: game.public_token, body, signal };
      return service.muster.api.call('POST', '/matchmaker/lobbies/find', request).catch(() => undefined);
    });
    const before = service.provider.requestsOf().length;
    await waitFor(() => service.provider.requestsOf().length >= before + 24, 'all requests to the provider');
    expect(await service.inspector.lobbiesOf(game.namespace_id)).toEqual([]);
    const other = await makeControlledGame(service.muster, { game_modes: { default: MODE } });
    expect(outcomeOf(await service.send(other, 'find'))).toBe('200');
    leaving.abort();
    await Promise.all(waiting);
  });
});
