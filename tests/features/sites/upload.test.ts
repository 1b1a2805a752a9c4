import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { showSite, uploadSite } from '../../support/site.ts';
import { countOutcomes } from '../../support/suite.ts';

const GIB = 1024 ** 3;
const FILES = [{ path: 'index.html', content_length: 1 }];

let opened: TestService;
let game: TestGame;
beforeAll(async () => {
  opened = await openTestService();
  game = await makeGame(opened.api, opened.administrator_token);
});
afterAll(() => opened[Symbol.asyncDispose]());

const sites = () => `/cloud/games/${game.game_id}/cdn/sites`;
const create = (files: { path: string; content_length: number }[], display_name = 'Site') =>
  opened.api.post(sites(), game.cloud_token, { display_name, files });

describe('a site is refused', () => {
  const CASES: [string, { path: string; content_length: number }[], string][] = [
    ['without files', [], 'UPLOAD_INVALID'],
    ['with a path twice', [1, 2].map((content_length) => ({ path: 'a', content_length })), 'UPLOAD_INVALID'],
    ['with a path that is too long', [{ path: 'x'.repeat(1_025), content_length: 1 }], 'API_BAD_BODY'],
    ['with an empty path', [{ path: '', content_length: 1 }], 'API_BAD_BODY'],
    [
      'with too many files',
      Array.from({ length: 10_001 }, (_, index) => ({ path: `${index}`, content_length: 0 })),
      'UPLOAD_INVALID',
    ],
    ['with a gigabyte', [{ path: 'a', content_length: GIB }], 'UPLOAD_TOO_LARGE'],
    [
      'with a gigabyte in parts',
      [1, 2].map((part) => ({ path: `${part}`, content_length: GIB / 2 })),
      'UPLOAD_TOO_LARGE',
    ],
  ];
  for (const [what, files, code] of CASES) {
    test(what, async () => {
      expect((await create(files)).body.code).toBe(code);
    });
  }

  test('in a version if it is incomplete, missing, or of another game', async () => {
    const version = (site_id?: string) =>
      opened.api.post(`/cloud/games/${game.game_id}/versions/validate`, game.cloud_token, {
        display_name: 'With a site',
        config: { cdn: site_id === undefined ? {} : { site_id } },
      });
    const pathsIn = async (site_id?: string) =>
      (await version(site_id)).body.errors.map(({ path }: { path: string[] }) => path.join('.'));
    const { site_id: incomplete } = (await create([{ path: 'a', content_length: 1 }])).body;
    const other = await makeGame(opened.api, opened.administrator_token);
    const theirs = await uploadSite(opened.api, other, { a: 'x' });
    for (const site_id of [incomplete, crypto.randomUUID(), theirs]) {
      expect(await pathsIn(site_id)).toEqual(['config.cdn.site-id.not-found']);
    }
    expect(await pathsIn()).toEqual(['config.cdn.no-site-id']);
    expect(await pathsIn(await uploadSite(opened.api, game, { a: 'x' }))).toEqual([]);
  });
});

test('sites: 500 files are served byte for byte, whatever their names', async () => {
  const own = await makeGame(opened.api, opened.administrator_token);
  const NAMES = [
    'ä',
    'a b',
    'a+b',
    'a%41',
    'a#b',
    'a?b',
    '...',
    '.hidden',
    'CON',
    'a:b',
    "a'b",
    'a"b',
    '%2e%2e',
    '日本',
  ];
  const names = [...NAMES, ...Array.from({ length: 486 }, (_, index) => `deep/${index % 7}/file ${index}.bin`)];
  const files = Object.fromEntries(
    names.map((name, index) => [name, crypto.getRandomValues(new Uint8Array((index * 37) % 3_000))]),
  );
  const site_id = await uploadSite(opened.api, own, files);
  await showSite(opened.api, own, { site_id });
  const { game: seen } = await opened.api.ok('GET', `/cloud/games/${own.game_id}`, { token: own.cloud_token });
  const headers = { host: `${seen.name_id}.sites.localhost` };
  for (const [name, content] of Object.entries(files)) {
    const path = name.split('/').map(encodeURIComponent).join('/');
    const response = await fetch(`${opened.config.public_url}/${path}`, { headers });
    expect({ name, status: response.status }).toEqual({ name, status: 200 });
    expect(Buffer.from(await response.arrayBuffer()).equals(Buffer.from(content))).toBe(true);
  }
});

test('sites: a game has 10,000 at most, also concurrently, and lists all of them', async () => {
  const own = await makeGame(opened.api, opened.administrator_token);
  const path = `/cloud/games/${own.game_id}/cdn/sites`;
  const { site_id } = (await opened.api.post(path, own.cloud_token, { display_name: 'First', files: FILES })).body;
  await using database = openDatabase(opened.database_address, 1);
  await database.queries.execute(sql`
    insert into sites (site_id, game_id, upload_id, display_name, content_length, create_ts)
    select gen_random_uuid(), game_id, upload_id, 'many ' || number, 1, create_ts + number * interval '1 millisecond'
    from sites, generate_series(1, 9998) as number where site_id = ${site_id}`);
  const answers = await Promise.all(
    [1, 2, 3].map(() => opened.api.post(path, own.cloud_token, { display_name: 'Last', files: FILES })),
  );
  expect(countOutcomes(answers)).toEqual({ '200': 1, '400 GAME_TOO_MANY_SITES': 2 });
  const { sites: all } = await opened.api.ok('GET', path, { token: own.cloud_token });
  expect([all.length, all.at(-1).site_id]).toEqual([10_000, site_id]);
});
