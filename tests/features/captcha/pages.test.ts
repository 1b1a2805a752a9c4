import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import {
  BODIES,
  HCAPTCHA,
  shareCaptchaService,
  solved,
  solveWork,
  TURNSTILE,
} from '../../support/captcha/captcha-game.ts';
import { outcomeOf } from '../../support/suite.ts';

const service = shareCaptchaService();

describe('a proof of work', () => {
  test('is requested, solved and accepted', async () => {
    const game = await service.makeGame({ pow: { difficulty: 2 } });
    const refused = await service.send(game, 'find');
    expect(outcomeOf(refused)).toBe('403 CAPTCHA_CAPTCHA_REQUIRED');
    const { challenge_url } = refused.body.metadata.pow;
    expect(challenge_url).toBe(`${service.muster.config.public_url}/matchmaker/captcha/challenge`);
    const answer = await service.muster.api.get(challenge_url, game.public_token);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const work = await solveWork(answer.body);
    expect(outcomeOf(await service.send(game, 'find', work))).toBe('200');
    expect(outcomeOf(await service.send(game, 'find', work))).toBe('400 CAPTCHA_CAPTCHA_FAILED');
    expect((await service.send(game, 'find', work, service.second)).body.message).toContain('used before');
    expect(outcomeOf(await service.send(game, 'create'))).toBe('200');
  });

  test('is issued on one machine and checked on another, without a provider', async () => {
    const game = await service.makeGame({ pow: { difficulty: 2 } });
    const before = service.provider.requestsOf().length;
    const challenge = await service.second.api.ok('GET', '/v1/captcha/challenge', { token: game.public_token });
    expect(outcomeOf(await service.send(game, 'find', await solveWork(challenge)))).toBe('200');
    expect(service.provider.requestsOf().length).toBe(before);
  });

  test('is solved by the client in docs/captcha.md', async () => {
    const page = await Bun.file(join(import.meta.dir, '../../../docs/captcha.md')).text();
    const printed = [...page.matchAll(/```js\n([\s\S]*?)```/g)].map(([, source]) => source).join('\n');
    const client = new Function(`${printed}; return { find };`)();
    const game = await service.makeGame({ pow: { difficulty: 2 }, requests_before_reverify: 0 });
    const answer = await client.find(`${service.muster.config.public_url}`, game.public_token, BODIES.find);
    expect(answer.status).toBe(200);
    expect((await answer.json()).lobby.lobby_id).toBeString();
  });

  test('is not issued where the version requires none, nor without a public token', async () => {
    const game = await service.makeGame({ hcaptcha: HCAPTCHA });
    const path = '/matchmaker/captcha/challenge';
    expect(outcomeOf(await service.muster.api.get(path, game.public_token))).toBe('400 CAPTCHA_WORK_NOT_USED');
    expect(outcomeOf(await service.muster.api.get(path))).toBe('401 API_UNAUTHORIZED');
    expect(outcomeOf(await service.muster.api.get(path, game.cloud_token))).toBe('401 CLAIMS_MISSING_ENTITLEMENT');
  });
});

describe("a namespace's own pages need no token", () => {
  test('to find, create and join, also with a captcha; other pages do, and so do all when it is turned off', async () => {
    const game = await service.makeGame({
      pow: { difficulty: 2 },
      turnstile: { domains: { 'sites.example.com': TURNSTILE } },
    });
    const { game: seen } = await service.muster.api.ok('GET', `/cloud/games/${game.game_id}`, {
      token: game.cloud_token,
    });
    const origin = `https://${seen.name_id}.sites.example.com`;
    const from = (page: string, method: string, path: string, body?: object) =>
      service.muster.api.call(method, path, { headers: { origin: page }, ...(body ? { body } : {}) });
    const find = (body: object = {}, page = origin) =>
      from(page, 'POST', '/matchmaker/lobbies/find', { ...BODIES.find, ...body });
    const other_pages = [
      'https://evil.example',
      `${origin}.evil.example`,
      `https://${seen.name_id}--staging.sites.example.com`,
    ];
    for (const page of [...other_pages.slice(0, 2), 'null']) {
      expect(outcomeOf(await find({}, page))).toBe('401 API_UNAUTHORIZED');
    }
    // The page of another namespace of the game, whose version has no such mode.
    expect(outcomeOf(await find({}, other_pages[2]))).toBe('404 MATCHMAKER_GAME_MODE_NOT_FOUND');
    const refused = await find();
    expect(outcomeOf(refused)).toBe('403 CAPTCHA_CAPTCHA_REQUIRED');
    expect(Object.keys(refused.body.metadata)).toEqual(['turnstile', 'pow']);
    const { body: challenge } = await from(origin, 'GET', '/matchmaker/captcha/challenge');
    const found = await find(await solveWork(challenge));
    expect(outcomeOf(found)).toBe('200');
    const { lobby_id } = found.body.lobby;
    expect(outcomeOf(await from(origin, 'POST', '/matchmaker/lobbies/join', { lobby_id }))).toBe('200');
    expect(outcomeOf(await from(origin, 'POST', '/matchmaker/lobbies/create', BODIES.create))).toBe('200');
    // Solved on the page, and checked with the key of the page's domain.
    const once = service.captcha('below-hostname');
    expect(outcomeOf(await find(solved(once, 'turnstile')))).toBe('400 CAPTCHA_CAPTCHA_FAILED');
    expect(service.provider.requestsOf(once)[0]?.form.secret).toBe(TURNSTILE.secret_key);
    const namespace = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}`;
    await service.muster.api.ok('PUT', `${namespace}/domain-public-auth`, {
      token: game.cloud_token,
      body: { enabled: false },
    });
    expect(outcomeOf(await find())).toBe('401 API_UNAUTHORIZED');
    expect(outcomeOf(await from(origin, 'GET', '/matchmaker/captcha/challenge'))).toBe('401 API_UNAUTHORIZED');
  });
});
