import { afterAll, beforeAll, expect, test } from 'bun:test';
import { route } from '../../src/platform/http/route.ts';
import { openTestApp } from '../support/http-app.ts';
import { sendRaw } from '../support/network/raw-http.ts';
import { fillPath, listOperations } from '../support/operations.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';

let opened: TestService;
beforeAll(async () => {
  opened = await openTestService();
});
afterAll(() => opened[Symbol.asyncDispose]());

const PAGES = [
  '/openapi.json',
  '/asyncapi.json',
  '/swagger',
  '/swagger/ui.js',
  '/client.js',
  '/muster.schema.json',
  '/docs/errors',
  '/watch',
];
/** These differ from one request to the next. */
const ITS_OWN = ['rvt-ray-id', 'ratelimit-remaining', 'ratelimit-reset'];

const send = (base_url: string, method: string, path: string, token = '') =>
  sendRaw(
    base_url,
    `${method} ${path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  );

/** Their bodies have figures of the moment, which may be longer in the next answer. */
const WITH_FIGURES = /^\/cloud\/service/;

/** Returns all headers that are the same for each request; of those that may differ, only that there is one. */
function readHeaders(headers: Headers, path: string): Record<string, unknown> {
  const entries = [...headers].filter(([name]) => !ITS_OWN.includes(name));
  const same = { ...Object.fromEntries(entries), date: headers.has('date') };
  return WITH_FIGURES.test(path) ? { ...same, 'content-length': headers.has('content-length') } : same;
}

test('HEAD: every path that supports GET answers with the status and headers of GET, without a body', async () => {
  const { api, administrator_token } = opened;
  const operations = (await listOperations(api)).filter(({ method }) => method === 'GET');
  expect(operations.length).toBeGreaterThan(40);
  for (const path of [...operations.map((operation) => fillPath(operation)), ...PAGES, '/nothing']) {
    const get_answer = await send(api.base_url, 'GET', path, administrator_token);
    const head_answer = await send(api.base_url, 'HEAD', path, administrator_token);
    expect({ path, ...head_answer, headers: readHeaders(head_answer.headers, path) }).toEqual({
      path,
      status: get_answer.status,
      body: '',
      headers: readHeaders(get_answer.headers, path),
    });
  }
});

test('HEAD: a long poll waits for the next change', async () => {
  const { api, administrator_token: token } = opened;
  const { watch, groups } = await api.ok('GET', '/cloud/games', { token });
  const answer = send(api.base_url, 'HEAD', `/cloud/games?watch_index=${watch.index}`, token);
  const body = { name_id: 'head', display_name: 'Head', developer_group_id: groups[0].group_id };
  await api.ok('POST', '/cloud/games', { token, body });
  const { status, body: text, headers } = await answer;
  expect([status, text]).toEqual([200, '']);
  const changed = await send(api.base_url, 'GET', '/cloud/games', token);
  expect(headers.get('content-length')).toBe(changed.headers.get('content-length'));
});

test('HEAD: a streamed body is cancelled, not read', async () => {
  let is_cancelled = false;
  const endless = () =>
    new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(1_000)),
      cancel: () => {
        is_cancelled = true;
      },
    });
  const answer = async () => new Response(endless(), { headers: { vary: 'Accept-Language', 'x-own': 'yes' } });
  await using app = await openTestApp([route('GET', '/endless', { summary: 'For a test.', allow: 'anyone' }, answer)]);
  const { status, body, headers } = await send(app.api.base_url, 'HEAD', '/endless');
  expect([status, body, headers.get('x-own')]).toEqual([200, '', 'yes']);
  await waitFor(() => is_cancelled, 'the end of the body');
});

test('Vary: the header that a route names is kept, and Origin is added once', async () => {
  const varies = (path: `/${string}`, vary: string) =>
    route(
      'GET',
      path,
      { summary: 'For a test.', allow: 'anyone' },
      async () => new Response('', { headers: { vary } }),
    );
  await using app = await openTestApp([varies('/language', 'Accept-Language'), varies('/origin', 'accept, origin')]);
  expect((await app.api.get('/language')).headers.get('vary')).toBe('Accept-Language, Origin');
  expect((await app.api.get('/origin')).headers.get('vary')).toBe('accept, origin');
});
