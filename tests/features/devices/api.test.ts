import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { makeGame, type TestGame } from '../../support/game.ts';
import { openTestService, type TestService } from '../../support/service.ts';

const HOUR_MS = 3_600_000;

let opened: TestService;
let game: TestGame;
beforeAll(async () => {
  opened = await openTestService();
  game = await makeGame(opened.api, opened.administrator_token);
});
afterAll(() => opened[Symbol.asyncDispose]());

const prepare = () => opened.api.ok('POST', '/cloud/devices/links');
const readLink = (device_link_token: string, watch_index?: string) => {
  const query = new URLSearchParams({ device_link_token, ...(watch_index === undefined ? {} : { watch_index }) });
  return opened.api.get(`/cloud/devices/links?${query}`);
};
const complete = (device_link_token: string, token = opened.administrator_token, game_id = game.game_id) =>
  opened.api.post('/cloud/devices/links/complete', token, { device_link_token, game_id });

describe('a device link cannot be completed', () => {
  test('without a token, by a tool, for a game of others, or with another kind of token', async () => {
    const { device_link_token } = await prepare();
    const nothing = crypto.randomUUID();
    const refusals = [
      [await opened.api.post('/cloud/devices/links/complete', undefined, {}), 401, 'API_UNAUTHORIZED'],
      [await complete(device_link_token, game.cloud_token), 401, 'CLAIMS_MISSING_ENTITLEMENT'],
      [await complete(device_link_token, undefined, nothing), 404, 'GAME_NOT_FOUND'],
      [await complete(game.cloud_token), 400, 'TOKEN_ERROR'],
      [await complete('device.nonsense'), 400, 'TOKEN_ERROR'],
    ] as const;
    for (const [{ status, body }, expected_status, code] of refusals) {
      expect({ status, code: body.code }).toEqual({ status: expected_status, code });
    }
    expect((await readLink(device_link_token)).body).toEqual({ watch: { index: expect.any(String) } });
  });

  test('after an hour', async () => {
    await using late = await openTestService();
    const { device_link_token } = await late.api.ok('POST', '/cloud/devices/links');
    late.clock.advance(HOUR_MS + 61_000);
    const { status, body } = await late.api.get(`/cloud/devices/links?device_link_token=${device_link_token}`);
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'TOKEN_ERROR' });
    expect(body.message).toContain('it has expired');
  });
});

describe('a completed device link', () => {
  test('gives the waiting tool a cloud token of the game, once', async () => {
    const { device_link_id, device_link_token, device_link_url, code } = await prepare();
    expect(device_link_id).toMatch(/^[0-9a-f-]{36}$/);
    expect(device_link_token).toStartWith('device.');
    const page = await opened.api.get(device_link_url);
    expect(page.status).toBe(200);
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(code).toMatch(/^[2-9A-HJ-NP-Z]{4}-[2-9A-HJ-NP-Z]{4}$/);
    expect(page.body).toContain(`<p class="code">${code}</p>`);
    expect((await prepare()).code).not.toBe(code);
    expect(await opened.api.get(`${device_link_url}x`)).toMatchObject({ status: 400, body: { code: 'TOKEN_ERROR' } });

    const { body: before } = await readLink(device_link_token);
    const waiting = readLink(device_link_token, before.watch.index);
    expect(await complete(device_link_token)).toMatchObject({ status: 200, body: {} });
    const { cloud_token, watch } = (await waiting).body;
    expect(watch.index).not.toBe(before.watch.index);
    const { agent } = await opened.api.ok('GET', '/cloud/auth/inspect', { token: cloud_token });
    expect(agent).toEqual({ game_cloud: { game_id: game.game_id } });

    expect(await complete(device_link_token)).toMatchObject({
      status: 400,
      body: { code: 'CLOUD_DEVICE_LINK_ALREADY_COMPLETE' },
    });
  });

  test('has a short address until it expires, which leads to the page and to no other link', async () => {
    await using late = await openTestService();
    const { device_link_id, device_link_url, short_url } = await late.api.ok('POST', '/cloud/devices/links');
    const follow = (url: string) => fetch(url, { redirect: 'manual' });
    const found = await follow(short_url);
    expect([found.status, new URL(found.headers.get('location') ?? '', short_url).href]).toEqual([
      302,
      device_link_url,
    ]);
    // Of the future, of another version of UUIDs, and no UUID.
    const future = Bun.randomUUIDv7('hex', late.clock.now().getTime() + HOUR_MS);
    const wrong = [future, 'ffffffff-ffff-4fff-bfff-ffffffffffff', '00000000-0000-7000-8000-000000000000'];
    for (const id of wrong) expect((await follow(short_url.replace(device_link_id, id))).status).toBe(400);
    expect((await follow(`${short_url}x`)).status).not.toBe(302);
    late.clock.advance(HOUR_MS + 61_000);
    expect((await follow(short_url)).status).toBe(400);
  });

  test('has a code that only the service knows, whatever the label of its token', async () => {
    await using other = await openTestService();
    const { device_link_id, device_link_token, code } = await prepare();
    const codeOf = async ({ api }: TestService, token: string) => {
      const { body } = await api.get(`/devices/link/${token}`);
      return /<p class="code">([^<]+)</.exec(String(body))?.[1];
    };
    expect(await codeOf(opened, device_link_token.replace('device.', 'device_other.'))).toBe(code);
    // Its id alone says nothing about it.
    const { headers } = await fetch(`${other.config.public_url}/link/${device_link_id}`, { redirect: 'manual' });
    const others = await codeOf(other, headers.get('location')?.split('/').at(-1) ?? '');
    expect(others).toMatch(/^[2-9A-Z]{4}-[2-9A-Z]{4}$/);
    expect(others).not.toBe(code);
  });

  test('is completed by one of two concurrent people', async () => {
    const { device_link_token } = await prepare();
    const answers = await Promise.all(Array.from({ length: 8 }, () => complete(device_link_token)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ body }) => body.code === 'CLOUD_DEVICE_LINK_ALREADY_COMPLETE')).toHaveLength(7);
  });
});
