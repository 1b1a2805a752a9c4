import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import bcrypt from 'bcryptjs';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { showSite, uploadSite } from '../../support/site.ts';

const SCRIPT = `console.log('${'x'.repeat(5_000)}');`;
const PICTURE = crypto.getRandomValues(new Uint8Array(10_000));
const FILES = {
  'index.html': '<!doctype html><title>Site</title>',
  'app.js': SCRIPT,
  'assets/picture.png': PICTURE,
  'deep/er/index.html': 'deeper',
  'with space ä.txt': 'umlaut',
  '.well-known/thing': 'dot',
};

let opened: TestService;
let game: TestGame;
let host: string;
beforeAll(async () => {
  opened = await openTestService();
  game = await makeGame(opened.api, opened.administrator_token);
  const { game: seen } = await opened.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
  host = `${seen.name_id}.sites.localhost`;
  const site_id = await uploadSite(opened.api, game, FILES);
  await showSite(opened.api, game, {
    site_id,
    routes: [
      {
        glob: 'assets/**',
        priority: 1,
        middlewares: [
          {
            kind: {
              custom_headers: {
                headers: [
                  { name: 'X-Asset', value: 'yes' },
                  { name: 'Vary', value: 'Save-Data' },
                ],
              },
            },
          },
        ],
      },
      {
        glob: '**',
        priority: 0,
        middlewares: [
          {
            kind: {
              custom_headers: {
                headers: [
                  { name: 'X-Asset', value: 'no' },
                  { name: 'vary', value: 'DPR' },
                ],
              },
            },
          },
        ],
      },
    ],
  });
});
afterAll(() => opened[Symbol.asyncDispose]());

const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(`${opened.config.public_url}${path}`, { method, headers: { host, ...headers }, decompress: false });

/** Returns all headers that are the same for each request; for the date and the ray id, only that there is one. */
const readHeaders = ({ headers }: Response) => ({
  ...Object.fromEntries(headers),
  date: headers.has('date'),
  'rvt-ray-id': headers.has('rvt-ray-id'),
});

describe('sites: files', () => {
  for (const [path, content] of Object.entries(FILES)) {
    test(`${path} is served as it was uploaded`, async () => {
      const response = await get(`/${encodeURI(path)}`);
      expect(response.status).toBe(200);
      expect(Buffer.from(await response.arrayBuffer())).toEqual(Buffer.from(content));
    });
  }

  test('a path that ends with a slash serves its index.html', async () => {
    expect(await (await get('/')).text()).toContain('<title>Site</title>');
    expect(await (await get('/deep/er/')).text()).toBe('deeper');
  });

  test('a namespace is found by its name among more than a game lists', async () => {
    const { game: seen } = await opened.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    await using database = openDatabase(opened.database_address, 1);
    await database.queries.execute(sql`
      insert into namespaces (namespace_id, game_id, name_id, display_name, version_id, create_ts)
      select gen_random_uuid(), game_id, 'many-' || number, 'A' || number, version_id, now()
      from namespaces, generate_series(1, 1000) as number where namespace_id = ${game.namespace_id}`);
    const named = await get('/', { host: `${seen.name_id}--prod.sites.localhost` });
    expect(await named.text()).toContain('<title>Site</title>');
    await database.queries.execute(sql`delete from namespaces where name_id like 'many-%'`);
  });

  test('a missing file is a 404, and no path of the API exists', async () => {
    for (const path of [
      '/nothing',
      '/deep/er',
      '/cloud/games',
      '/swagger',
      '/%',
      '/..%2f..%2fetc/passwd',
      '/health/live',
    ]) {
      const response = await get(path);
      expect(response.status).toBe(404);
      expect(response.headers.get('content-type')).toContain('text/plain');
    }
    expect((await get('/', { host: 'unknown.sites.localhost' })).status).toBe(404);
    expect((await get('/', { host: host.replace('.', '--nothing.') })).status).toBe(404);
    expect((await get('/', {}, 'POST')).status).toBe(405);
  });

  test('the host of a site may end with a dot, as absolute host names do', async () => {
    expect(await (await get('/', { host: `${host}.` })).text()).toContain('<title>Site</title>');
    expect((await get('/', { host: 'unknown.sites.localhost.' })).headers.get('content-type')).toContain('text/plain');
  });

  test('types, caching and headers: HTML is not cached, other files are revalidated', async () => {
    const page = await get('/');
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('cache-control')).toBe('no-cache, no-store');
    const script = await get('/app.js');
    expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(script.headers.get('cache-control')).toContain('must-revalidate');
    // The route of higher priority wins, and the headers of the transfer are the service's own.
    expect(script.headers.get('x-asset')).toBe('no');
    expect((await get('/assets/picture.png')).headers.get('x-asset')).toBe('yes');
    expect(script.headers.get('set-cookie')).toBeNull();
    expect(script.headers.get('x-content-type-options')).toBe('nosniff');
  });

  test('a file that the browser has is not sent again', async () => {
    const etag = (await get('/app.js')).headers.get('etag') ?? '';
    for (const seen of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const response = await get('/app.js', { 'if-none-match': seen });
      expect(response.status).toBe(304);
      expect(await response.text()).toBe('');
    }
    expect((await get('/app.js', { 'if-none-match': '"other"' })).status).toBe(200);
  });

  test('HEAD answers like GET, without the body', async () => {
    const etag = (await get('/app.js')).headers.get('etag') ?? '';
    for (const [path, headers] of [
      ['/assets/picture.png', {}],
      ['/app.js', { 'accept-encoding': 'gzip' }],
      ['/app.js', { 'if-none-match': etag }],
      ['/nothing', {}],
    ] as const) {
      const [of_get, of_head] = [await get(path, headers), await get(path, headers, 'HEAD')];
      expect(of_head.status).toBe(of_get.status);
      expect(readHeaders(of_head)).toEqual(readHeaders(of_get));
      expect(await of_head.text()).toBe('');
    }
  });

  test('HEAD: a range is ignored', async () => {
    for (const range of ['bytes=0-9', 'bytes=10000-']) {
      const { status, headers } = await get('/assets/picture.png', { range }, 'HEAD');
      expect([status, headers.get('content-length'), headers.get('content-range')]).toEqual([200, '10000', null]);
    }
  });

  test('Vary: it has the names of all matching custom headers and those of the service', async () => {
    expect((await get('/assets/picture.png')).headers.get('vary')).toBe('DPR, Save-Data, Accept-Encoding');
    expect((await get('/app.js')).headers.get('vary')).toBe('DPR, Accept-Encoding');
  });

  const RANGES: [string, number, string | null][] = [
    ['bytes=0-9', 206, 'bytes 0-9/10000'],
    ['bytes=9990-', 206, 'bytes 9990-9999/10000'],
    ['bytes=-10', 206, 'bytes 9990-9999/10000'],
    ['bytes=5-99999', 206, 'bytes 5-9999/10000'],
    ['bytes=10000-', 416, 'bytes */10000'],
    ['bytes=0-1,5-6', 200, null],
    ['nonsense', 200, null],
  ];
  for (const [range, status, content_range] of RANGES) {
    test(`range ${range}: ${status}`, async () => {
      const response = await get('/assets/picture.png', { range });
      expect(response.status).toBe(status);
      expect(response.headers.get('content-range')).toBe(content_range);
      const [, first, last] = /bytes (\d+)-(\d+)/.exec(content_range ?? '') ?? [];
      if (first === undefined || last === undefined) return;
      expect(await response.bytes()).toEqual(PICTURE.slice(Number(first), Number(last) + 1));
    });
  }

  test('a range of another version of the file gets the whole file', async () => {
    const response = await get('/assets/picture.png', { range: 'bytes=0-9', 'if-range': '"other"' });
    expect(response.status).toBe(200);
  });

  const DECODERS = {
    gzip: (bytes: Uint8Array<ArrayBuffer>) => Buffer.from(Bun.gunzipSync(bytes)),
    zstd: (bytes: Uint8Array<ArrayBuffer>) => Buffer.from(Bun.zstdDecompressSync(bytes)),
  };
  test('compression depends on what the browser accepts; pictures are sent uncompressed', async () => {
    for (const [accept, expected] of [
      ['gzip', 'gzip'],
      ['gzip;q=0.5, zstd', 'zstd'],
      ['gzip, br, zstd', 'zstd'],
      ['br', 'br'],
      ['identity', null],
      ['gzip;q=0', null],
      ['', null],
    ] as const) {
      const response = await get('/app.js', { 'accept-encoding': accept });
      expect(response.headers.get('content-encoding')).toBe(expected);
      expect(response.headers.get('vary')).toContain('Accept-Encoding');
      const bytes = await response.bytes();
      if (expected === null) expect(Buffer.from(bytes).toString()).toBe(SCRIPT);
      else expect(bytes.length).toBeLessThan(500);
      if (expected === 'gzip' || expected === 'zstd') expect(DECODERS[expected](bytes).toString()).toBe(SCRIPT);
    }
    const picture = await get('/assets/picture.png', { 'accept-encoding': 'gzip' });
    expect(picture.headers.get('content-encoding')).toBeNull();
    const plain = (await get('/app.js', { 'accept-encoding': 'identity' })).headers.get('etag');
    expect((await get('/app.js', { 'accept-encoding': 'gzip' })).headers.get('etag')).not.toBe(plain);
  });
});

describe('sites: access', () => {
  test('with basic authentication, only the listed users with their passwords', async () => {
    const namespace = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}`;
    const password = await Bun.password.hash('secret', { algorithm: 'bcrypt', cost: 4 });
    const token = game.cloud_token;
    await opened.api.ok('POST', `${namespace}/auth-user`, { token, body: { user: 'ann', password } });
    await opened.api.ok('PUT', `${namespace}/cdn-auth`, { token, body: { auth_type: 'basic' } });
    const as = (credentials: string) => get('/', { authorization: `Basic ${btoa(credentials)}` });
    const refused = await get('/');
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toContain('Basic');
    for (const credentials of ['ann:wrong', 'bob:secret', 'ann', ':secret']) {
      expect((await as(credentials)).status).toBe(401);
    }
    for (let time = 0; time < 2; time += 1) expect((await as('ann:secret')).status).toBe(200);
    await opened.api.call('DELETE', `${namespace}/auth-user/ann`, { token });
    expect((await as('ann:secret')).status).toBe(401);
    await opened.api.ok('PUT', `${namespace}/cdn-auth`, { token, body: { auth_type: 'none' } });
    expect((await get('/')).status).toBe(200);
  });

  test('with a password of at most 72 bytes, because programs hash longer ones differently', async () => {
    const namespace = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}`;
    const token = game.cloud_token;
    const [longest, longer] = ['p'.repeat(72), 'p'.repeat(73)];
    const hashes = {
      longest: await Bun.password.hash(longest, { algorithm: 'bcrypt', cost: 4 }),
      // Bun hashes more than 72 bytes first; bcryptjs truncates.
      whole: await Bun.password.hash(longer, { algorithm: 'bcrypt', cost: 4 }),
      cut: await bcrypt.hash(longer, 4),
    };
    for (const [user, password] of Object.entries(hashes)) {
      await opened.api.ok('POST', `${namespace}/auth-user`, { token, body: { user, password } });
    }
    await opened.api.ok('PUT', `${namespace}/cdn-auth`, { token, body: { auth_type: 'basic' } });
    const as = async (user: string, password: string) =>
      (await get('/', { authorization: `Basic ${btoa(`${user}:${password}`)}` })).status;
    expect(await as('longest', longest)).toBe(200);
    for (const user of Object.keys(hashes)) expect(await as(user, longer)).toBe(401);
    await opened.api.ok('PUT', `${namespace}/cdn-auth`, { token, body: { auth_type: 'none' } });
  });

  test('by a domain of its own, from its addition to its removal', async () => {
    const domains = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/domains`;
    const getPage = () => get('/', { host: 'play.example.com' });
    expect((await getPage()).headers.get('content-type')).toContain('json');
    await opened.api.ok('POST', domains, { token: game.cloud_token, body: { domain: 'play.example.com' } });
    expect(await (await getPage()).text()).toContain('<title>Site</title>');
    await opened.api.call('DELETE', `${domains}/play.example.com`, { token: game.cloud_token });
    expect((await getPage()).headers.get('content-type')).toContain('json');
  });
});

test('pages of a namespace need no token to find lobbies, unless the namespace requires one', async () => {
  const namespace = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}`;
  const find = (origin: string) =>
    opened.api.call('POST', '/matchmaker/lobbies/find', { headers: { origin }, body: { game_modes: ['default'] } });
  // The version has no such game mode: the answer shows that the page was recognized.
  expect((await find(`http://${host}`)).body.code).toBe('MATCHMAKER_GAME_MODE_NOT_FOUND');
  expect((await find('https://elsewhere.example')).body.code).toBe('API_UNAUTHORIZED');
  expect((await find('null')).body.code).toBe('API_UNAUTHORIZED');
  const body = { enabled: false };
  await opened.api.ok('PUT', `${namespace}/domain-public-auth`, { token: game.cloud_token, body });
  expect((await find(`http://${host}`)).body.code).toBe('API_UNAUTHORIZED');
});

test('sites: a file that was served before is revalidated while sites cannot be read', async () => {
  await using database = openDatabase(opened.database_address, 1);
  const etag = (await get('/app.js')).headers.get('etag') ?? '';
  await database.transact(async (tx) => {
    await tx.execute(sql`lock table sites, upload_files in access exclusive mode`);
    const answer = await get('/app.js', { 'if-none-match': etag, 'accept-encoding': 'identity' });
    expect([answer.status, await answer.text()]).toEqual([304, '']);
  });
});
