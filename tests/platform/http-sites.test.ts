import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { ServiceError } from '../../src/platform/errors.ts';
import { createRays } from '../../src/platform/http/rays.ts';
import { route } from '../../src/platform/http/route.ts';
import type { Site } from '../../src/platform/http/site.ts';
import { openTestApp, type TestApp } from '../support/http-app.ts';
import { sendRaw } from '../support/network/raw-http.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const FAILURE = new Error('the database is gone');

const SITES: Record<string, Site> = {
  'page.sites.example': { respond: async () => new Response('a page', { headers: { 'x-own': 'yes' } }) },
  'busy.sites.example': {
    respond: async () => {
      throw new ServiceError('CDN_BUSY', {});
    },
  },
};

const rays = createRays();
let app: TestApp;
beforeAll(async () => {
  const find = async (url: string) => {
    const { hostname } = new URL(url);
    if (hostname === 'broken.sites.example') throw FAILURE;
    return SITES[hostname];
  };
  const api = route('GET', '/', { summary: 'For a test.', allow: 'anyone' }, async () => ({ of: 'the API' }));
  app = await openTestApp([api], { sites: { find }, rays });
});
afterAll(() => app[Symbol.asyncDispose]());

const send = (host: string, { method = 'GET', lines = '', body = '' } = {}) =>
  sendRaw(app.api.base_url, `${method} / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${lines}\r\n${body}`);

const eventsOf = (ray_id: string | null) => app.events.filter((event) => 'ray_id' in event && event.ray_id === ray_id);

describe('a request to the host of a site', () => {
  test('gets the answer of the site, with a ray id and no other header of the API', async () => {
    const { status, body, headers } = await send('page.sites.example', { lines: 'Origin: https://game.example\r\n' });
    expect([status, body, headers.get('x-own')]).toEqual([200, 'a page', 'yes']);
    expect(headers.get('rvt-ray-id')).toMatch(UUID);
    const names = ['x-frame-options', 'vary', 'access-control-allow-origin', 'ratelimit-limit'];
    expect(names.filter((name) => headers.has(name))).toEqual([]);
  });

  test('is in the log and found by its ray id, as the route "site"', async () => {
    const ray_id = (await send('page.sites.example')).headers.get('rvt-ray-id');
    expect(eventsOf(ray_id)).toMatchObject([{ event: 'request_served', method: 'GET', route: 'site', status: 200 }]);
    expect(rays.find(ray_id ?? '')).toMatchObject({ method: 'GET', route: 'site' });
  });

  test('is refused with an error of the catalogue, which has the ray id too', async () => {
    const { status, body, headers } = await send('busy.sites.example');
    expect([status, body.code, body.ray_id]).toEqual([503, 'CDN_BUSY', headers.get('rvt-ray-id')]);
  });

  test('is answered with ERROR if reading the site fails, and the log has the cause', async () => {
    const { status, body, headers } = await send('broken.sites.example');
    expect([status, body.code]).toEqual([500, 'ERROR']);
    expect(eventsOf(headers.get('rvt-ray-id'))).toMatchObject([
      { event: 'request_failed', route: 'site', cause: FAILURE },
      { event: 'request_served', route: 'site', status: 500 },
    ]);
  });

  test('has its connection closed after the answer if more of its body may follow', async () => {
    const { headers } = await send('page.sites.example', {
      method: 'POST',
      lines: 'Content-Length: 100000\r\n',
      body: 'a',
    });
    expect(headers.get('connection')).toBe('close');
  });
});

test('a request to any other host is for the API', async () => {
  expect((await send('muster.example')).body).toEqual({ of: 'the API' });
});
