import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { openTestService, type TestService } from '../../support/service.ts';
import { outcomeOf } from '../../support/suite.ts';

describe('the demo page', () => {
  let muster: TestService;
  beforeAll(async () => {
    muster = await openTestService({ MUSTER_DEMO: 'on' });
  }, 300_000);
  afterAll(() => muster[Symbol.asyncDispose]());

  test('has a token of the namespace prod, with which its script finds a lobby', async () => {
    const { body: page } = await muster.api.get('/demo');
    expect(page).not.toContain('{{');
    const [, token] = /const token = '(pub_prod\.[A-Za-z0-9_.-]+)'/.exec(String(page)) ?? [];
    const setup = await muster.api.ok('POST', '/identity/identities', { token });
    expect(setup.game_id).toBe(muster.service.bootstrap_result.demo?.game_id);
  });

  test('has its script in a file, and watches what its token may watch', async () => {
    const { body: page } = await muster.api.get('/demo');
    const [, script] = /import \{ connect \} from '([^']+)'/.exec(page) ?? [];
    const { status, headers, body } = await muster.api.get(String(script));
    expect([status, headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8']);
    expect(body).toContain('export {');
    const [, token] = /const token = '([^']+)'/.exec(page) ?? [];
    const [, path] = /\.watch\('([^']+)'/.exec(page) ?? [];
    expect(await muster.api.ok('GET', String(path), { token })).toMatchObject({ lobbies: [], watch: {} });
  });

  test('loads nothing from elsewhere, connects to lobbies only, and cannot be framed', async () => {
    const { status, headers } = await muster.api.get('/demo');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('rvt-ray-id')).toMatch(/^[0-9a-f-]{36}$/);
    const policy = (headers.get('content-security-policy') ?? '').split(';').map((rule) => rule.trim());
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("connect-src 'self' ws: wss:");
    expect(policy.join()).not.toMatch(/https?:|\*/);
  });

  test('supports GET only', async () => {
    expect(outcomeOf(await muster.api.post('/demo', undefined))).toBe('400 API_METHOD_NOT_ALLOWED');
  });
});

test('demo page: without the demo there is no page', async () => {
  await using muster = await openTestService({ MUSTER_DEMO: 'off' });
  expect(outcomeOf(await muster.api.get('/demo'))).toBe('404 API_NOT_FOUND');
});
