import { describe, expect, test } from 'bun:test';
import { makeGame } from '../../support/game.ts';
import { openTestService } from '../../support/service.ts';
import { shareService } from '../../support/suite.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const muster = shareService();

/** Sends what a page of the hub sends: with its origin and its cookie. */
async function send(
  method: string,
  path: string,
  { cookie, body, origin = muster.config.public_url }: { cookie?: string; body?: object; origin?: string | null } = {},
) {
  const response = await fetch(`${muster.config.public_url}${path}`, {
    method,
    headers: { ...(origin !== null && { origin }), ...(cookie !== undefined && { cookie }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** Makes a link, and returns its code. */
async function makeCode(token = muster.administrator_token): Promise<string> {
  const { url } = await muster.api.ok('POST', '/hub/links', { token, body: {} });
  return new URL(url).hash.slice('#login='.length);
}

/** Logs in with a new link. Returns the cookie as a browser sends it. */
async function logIn(token?: string): Promise<string> {
  const { status, headers } = await send('POST', '/hub/session', { body: { code: await makeCode(token) } });
  expect(status).toBe(200);
  return (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
}

const getToken = (cookie?: string, origin?: string | null) =>
  send('POST', '/hub/session/token', { body: {}, ...(cookie && { cookie }), ...(origin !== undefined && { origin }) });
const refusalOf = ({ status, body }: { status: number; body: { code: string } }) => ({ status, code: body.code });

test('hub: a browser without a cookie gets no token, and no refusal, which it would report as an error', async () => {
  const { status, body } = await getToken();
  expect({ status, body }).toEqual({ status: 200, body: {} });
});

describe('hub: a browser is refused', () => {
  test('with a link that was used, that is unknown, or that has expired', async () => {
    const refused = { status: 401, code: 'HUB_LINK_INVALID' };
    const code = await makeCode();
    expect((await send('POST', '/hub/session', { body: { code } })).status).toBe(200);
    expect(refusalOf(await send('POST', '/hub/session', { body: { code } }))).toEqual(refused);
    expect(refusalOf(await send('POST', '/hub/session', { body: { code: 'unknown' } }))).toEqual(refused);
    const late = await makeCode();
    muster.clock.advance(HOUR_MS + 1);
    expect(refusalOf(await send('POST', '/hub/session', { body: { code: late } }))).toEqual(refused);
  });

  test('with a link of another bearer than that of its session, unless it says that the link replaces it', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const cookie = await logIn();
    const code = await makeCode(game.cloud_token);
    const refused = await send('POST', '/hub/session', { cookie, body: { code } });
    expect(refusalOf(refused)).toEqual({ status: 400, code: 'HUB_OTHER_SESSION' });
    expect(refused.headers.get('set-cookie')).toBeNull();
    // The link stays valid.
    const replaced = await send('POST', '/hub/session', { cookie, body: { code, replaces_session: true } });
    expect(replaced.status).toBe(200);
  });

  test('with the cookie of a session that another link has replaced, of whichever bearer', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const cookieOf = ({ headers }: { headers: Headers }) => (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    const first = await logIn();
    const again = await send('POST', '/hub/session', { cookie: first, body: { code: await makeCode() } });
    expect(again.status).toBe(200);
    const second = cookieOf(again);
    const code = await makeCode(game.cloud_token);
    const other = await send('POST', '/hub/session', { cookie: second, body: { code, replaces_session: true } });
    expect(other.status).toBe(200);
    for (const ended of [first, second]) {
      expect(refusalOf(await getToken(ended))).toEqual({ status: 401, code: 'HUB_NOT_LOGGED_IN' });
    }
    expect((await getToken(cookieOf(other))).body.token).toBeString();
  });

  test('with a cookie of no session', async () => {
    const refused = { status: 401, code: 'HUB_NOT_LOGGED_IN' };
    const cookie = await logIn();
    const [name] = cookie.split('=');
    expect(refusalOf(await getToken(`${name}=unknown`))).toEqual(refused);
    // The code of a link is no session.
    expect(refusalOf(await getToken(`${name}=${await makeCode()}`))).toEqual(refused);
  });

  test('from a page of another origin, and without an origin, although it has the cookie', async () => {
    const cookie = await logIn();
    for (const [method, path] of [
      ['POST', '/hub/session/token'],
      ['DELETE', '/hub/session'],
      ['POST', '/hub/session'],
    ] as const) {
      const request = { cookie, ...(method === 'POST' && { body: { code: 'any' } }) };
      expect(refusalOf(await send(method, path, { ...request, origin: 'https://evil.example' }))).toEqual({
        status: 403,
        code: 'API_CORS_ORIGIN_NOT_ALLOWED',
      });
      expect(refusalOf(await send(method, path, { ...request, origin: null }))).toEqual({
        status: 400,
        code: 'API_MISSING_HEADER',
      });
    }
    expect((await getToken(cookie)).status).toBe(200);
  });

  test('when the API gets the cookie instead of a token', async () => {
    const cookie = await logIn();
    expect(refusalOf(await send('GET', '/cloud/games', { cookie }))).toEqual({ status: 401, code: 'API_UNAUTHORIZED' });
    expect(refusalOf(await send('POST', '/hub/links', { cookie, body: {} }))).toEqual({
      status: 401,
      code: 'API_UNAUTHORIZED',
    });
  });

  test('after it has logged out, and the cookie is gone', async () => {
    const cookie = await logIn();
    const { status, headers } = await send('DELETE', '/hub/session', { cookie });
    expect(status).toBe(200);
    expect(headers.get('set-cookie')).toContain('Max-Age=0');
    expect(refusalOf(await getToken(cookie))).toEqual({ status: 401, code: 'HUB_NOT_LOGGED_IN' });
  });

  test('after seven days', async () => {
    const cookie = await logIn();
    muster.clock.advance(7 * DAY_MS - 1_000);
    const { body } = await getToken(cookie);
    // The last token ends with the session.
    expect(Date.parse(body.expire_ts) - muster.clock.now().getTime()).toBeLessThanOrEqual(1_000);
    muster.clock.advance(1_001);
    expect(refusalOf(await getToken(cookie))).toEqual({ status: 401, code: 'HUB_NOT_LOGGED_IN' });
  });

  test('when the cloud token was revoked that its link was made with', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const cookie = await logIn(game.cloud_token);
    expect((await getToken(cookie)).status).toBe(200);
    muster.clock.advance(1_000);
    const revoke = `/cloud/games/${game.game_id}/tokens/revoke`;
    await muster.api.ok('POST', revoke, { token: muster.administrator_token, body: {} });
    expect(refusalOf(await getToken(cookie))).toEqual({ status: 401, code: 'HUB_NOT_LOGGED_IN' });
  });
});

describe('hub: a browser that opened a link', () => {
  test('has a cookie that no page can read and no other site can send', async () => {
    const { headers } = await send('POST', '/hub/session', { body: { code: await makeCode() } });
    const cookie = headers.get('set-cookie') ?? '';
    expect(cookie).toContain(`muster_session_${muster.config.port}=`);
    for (const part of ['HttpOnly', 'SameSite=Strict', 'Path=/hub/session']) expect(cookie).toContain(part);
    expect(cookie).not.toContain('Domain');
  });

  test('loses a cookie that game servers may have got, and the session of it', async () => {
    const [, secret] = (await logIn()).split('=');
    const old = `muster_hub_${muster.config.port}`;
    const { status, headers, body } = await getToken(`${old}=${secret}`);
    expect({ status, body }).toEqual({ status: 200, body: {} });
    expect(headers.get('set-cookie')).toMatch(new RegExp(`^${old}=; Path=/; Max-Age=0`));
    expect(refusalOf(await getToken(`muster_session_${muster.config.port}=${secret}`))).toEqual({
      status: 401,
      code: 'HUB_NOT_LOGGED_IN',
    });
    // Beside a cookie of a session, it changes nothing for that session.
    const own = await logIn();
    expect((await getToken(`${own}; ${old}=any`)).body.token).toBeString();
    expect((await getToken(own)).body.token).toBeString();
  });

  test('ends no more than four sessions at once by cookies that game servers may have got', async () => {
    const secrets = [];
    for (let made = 0; made < 5; made += 1) secrets.push((await logIn()).split('=')[1]);
    const port = muster.config.port;
    await getToken(secrets.map((secret) => `muster_hub_${port}=${secret}`).join('; '));
    const statuses = [];
    for (const secret of secrets) statuses.push((await getToken(`muster_session_${port}=${secret}`)).status);
    expect(statuses).toEqual([401, 401, 401, 401, 200]);
  });

  test('may send 600 requests for its session in each minute, as may all behind its address together', async () => {
    await using service = await openTestService({ MUSTER_LIMITS_SCALE: '1' });
    for (const path of ['/hub/session', '/hub/session/token']) {
      const { headers } = await fetch(`${service.config.public_url}${path}`, { method: 'POST', body: '{}' });
      expect(headers.get('ratelimit-limit')).toBe('600');
      expect(Number(headers.get('ratelimit-reset'))).toBeLessThanOrEqual(60);
    }
  }, 60_000);

  test('gets tokens for minutes, of the same bearer', async () => {
    const game = await makeGame(muster.api, muster.administrator_token);
    const { body: own } = await getToken(await logIn(game.cloud_token));
    expect(Date.parse(own.expire_ts) - muster.clock.now().getTime()).toBeLessThanOrEqual(HOUR_MS / 4);
    const { agent } = await muster.api.ok('GET', '/cloud/auth/inspect', { token: own.token });
    expect(agent).toEqual({ game_cloud: { game_id: game.game_id } });

    const { body } = await getToken(await logIn());
    const inspected = await muster.api.ok('GET', '/cloud/auth/inspect', { token: body.token });
    expect(inspected.agent.identity).toBeDefined();
  });

  test('gets no longer session for one of these tokens', async () => {
    const { body } = await getToken(await logIn());
    const cookie = await logIn(body.token);
    muster.clock.advance(HOUR_MS / 2);
    expect(refusalOf(await getToken(cookie))).toEqual({ status: 401, code: 'HUB_NOT_LOGGED_IN' });
  });

  test('gets no link for a token that has ended, although requests still accept it for a minute', async () => {
    const { body } = await getToken(await logIn());
    muster.clock.advance(HOUR_MS / 4 - 30_000);
    const { url, expire_ts } = await muster.api.ok('POST', '/hub/links', { token: body.token, body: {} });
    expect(url).toBeString();
    expect(Date.parse(expire_ts)).toBeLessThanOrEqual(Date.parse(body.expire_ts));
    muster.clock.advance(60_000);
    expect((await muster.api.get('/cloud/auth/inspect', body.token)).status).toBe(200);
    expect(refusalOf(await muster.api.post('/hub/links', body.token))).toEqual({
      status: 401,
      code: 'CLAIMS_ENTITLEMENT_EXPIRED',
    });
  });

  test('is one of two that opened it at the same moment', async () => {
    const code = await makeCode();
    const both = await Promise.all([1, 2].map(() => send('POST', '/hub/session', { body: { code } })));
    expect(both.map(({ status }) => status).sort()).toEqual([200, 401]);
  });
});

describe("hub: a page below the hub's parent domain, which can set a cookie of the hub's name, changes no session:", () => {
  test('over http, two cookies of one name are no session', async () => {
    const [own, foreign] = [await logIn(), await logIn()];
    for (const cookie of [`${own}; ${foreign}`, `${foreign}; ${own}`, `${own}; ${own}`]) {
      const { status, body, headers } = await getToken(cookie);
      // Without its own cookie, the browser would use the other one.
      expect([status, body, headers.get('set-cookie')]).toEqual([200, {}, null]);
    }
    expect((await getToken(own)).body.token).toBeString();
  });

  test('over https, a session counts only with the cookie that no other host can set, beside any others', async () => {
    const origin = 'https://play.example.com';
    await using service = await openTestService({ MUSTER_PUBLIC_URL: origin });
    const post = async (path: string, body: object, cookie = '') =>
      await fetch(`${service.config.local_url}${path}`, {
        method: 'POST',
        headers: { origin, host: 'play.example.com', cookie },
        body: JSON.stringify(body),
      });
    const start = async () => {
      const { url } = await service.api.ok('POST', `${service.config.local_url}/hub/links`, {
        token: service.administrator_token,
        body: {},
      });
      const answer = await post('/hub/session', { code: new URL(url).hash.slice('#login='.length) });
      const cookies = answer.headers.getSetCookie();
      return { cookies, pairs: cookies.map((cookie) => cookie.split(';')[0] ?? '') };
    };
    const { cookies, pairs } = await start();
    expect(cookies[0]).toContain('Path=/hub/session;');
    expect(cookies[1]).toStartWith('__Host-muster_session_');
    for (const part of ['Path=/;', 'Secure', 'HttpOnly', 'SameSite=Strict']) expect(cookies[1]).toContain(part);
    expect(cookies[1]).not.toContain('Domain');
    const [own = '', seal = ''] = pairs;
    const {
      pairs: [foreign = ''],
    } = await start();
    const tokenWith = async (...sent: string[]) =>
      ((await (await post('/hub/session/token', {}, sent.join('; '))).json()) as { token?: string }).token;
    for (const sent of [[foreign], [foreign, seal], [own], [seal]]) expect(await tokenWith(...sent)).toBeUndefined();
    expect(await tokenWith(own, seal)).toBeString();
    expect(await tokenWith(foreign, own, seal)).toBeString();
    // The seal is no secret of a session.
    const [name] = own.split('=');
    expect(await tokenWith(`${name}=${seal.split('=')[1]}`, seal)).toBeUndefined();
  }, 60_000);
});
