import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeGame, type TestGame } from '../../support/game.ts';
import { sendRaw } from '../../support/network/raw-http.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { showSite, uploadSite } from '../../support/site.ts';

const LONG = 'x'.repeat(4_096);
/** Names that point elsewhere, have a meaning for a system, or fit into no URL. No file may have them. */
const REFUSED = [
  '../x',
  '../../../../../../etc/shadow',
  'a/../b',
  'a/b/../../../c',
  'a/..',
  '..',
  '.',
  './a',
  'a/./b',
  'a/.',
  '/etc/passwd',
  '//host/share',
  'a//b',
  'a/',
  '/',
  '///',
  '/..',
  '',
  LONG,
  `${LONG}/../x`,
  '..\\x',
  '..\\..\\x',
  'C:\\x',
  'a\\b',
  '\\\\host\\share',
  '\\',
  'a/..\\b',
  '\\\\?\\C:\\x',
  '\\\\.\\pipe\\x',
  'a\0b',
  'a/\0',
  'a\nb',
  'a\rb',
  'a\r\nX-Header: y',
  'a\tb',
  '\u0001',
  '\u007f',
  '\u0085',
  '\u009f',
  '\ud800',
];
/** Strange but harmless names: each is a file of its own, served under exactly its name. */
const KEPT = [
  '..%2fx',
  '%2e%2e',
  '%2e%2e%2fx',
  '..%5cx',
  '%00',
  'a%2fb',
  '%252e%252e',
  '..;',
  '...',
  '. .',
  '..a',
  '~',
  '~root',
  'CON',
  'NUL.txt',
  'a.',
  'a ',
  ' a',
  '-rf',
  '$HOME',
  '`id`',
  ';x',
  '|x',
  '*',
  '\u202egpj.exe',
  '\ufeffa',
  'A',
  'a',
  'caf\u00e9',
  'cafe\u0301',
  'stra\u00dfe',
  'STRASSE',
  '\ufe4e',
  '\uff0e\uff0e\uff0fx',
  'x'.repeat(1_024),
];

let opened: TestService;
let game: TestGame;
let host: string;
let sentinel: string;
const contents = Object.fromEntries(KEPT.map((name, number) => [name, `${number}: ${name.slice(0, 20)}`]));
beforeAll(async () => {
  opened = await openTestService();
  game = await makeGame(opened.api, opened.administrator_token);
  const { game: seen } = await opened.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
  host = `${seen.name_id}.sites.localhost`;
  sentinel = join(dirname(opened.config.data_directory), `sentinel-${crypto.randomUUID()}`);
  await writeFile(sentinel, 'nobody writes here');
  await writeFile(join(opened.config.data_directory, 'x'), 'nobody reads this');
  await showSite(opened.api, game, { site_id: await uploadSite(opened.api, game, contents) });
});
afterAll(() => opened[Symbol.asyncDispose]());

const sites = () => `/cloud/games/${game.game_id}/cdn/sites`;

/** Requests exactly these bytes as a path, because clients normalize paths. */
async function ask(target: string, method = 'GET') {
  return await sendRaw(
    opened.api.base_url,
    `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
  );
}

test('names: there are more than 60 hostile and strange ones', () => {
  expect(new Set([...REFUSED, ...KEPT]).size).toBeGreaterThan(60);
});

describe('a site with a hostile file name is refused, and nothing of it is kept:', () => {
  for (const path of REFUSED) {
    test(JSON.stringify(path).slice(0, 60), async () => {
      const before = await opened.api.ok('GET', sites(), { token: game.cloud_token });
      const files = [
        { path: 'index.html', content_length: 1 },
        { path, content_length: 1 },
      ];
      const { status, body } = await opened.api.post(sites(), game.cloud_token, { display_name: 'Site', files });
      expect([status, body.code]).toEqual([400, expect.stringMatching(/^(UPLOAD_INVALID|API_BAD_BODY)$/)]);
      expect(await opened.api.ok('GET', sites(), { token: game.cloud_token })).toEqual(before);
    });
  }
});

describe('a file with a strange name is served under it:', () => {
  for (const [name, content] of Object.entries(contents)) {
    test(JSON.stringify(name).slice(0, 60), async () => {
      const { status, body } = await ask(`/${encodeURIComponent(name)}`);
      expect({ status, body }).toEqual({ status: 200, body: content });
    });
  }
});

describe('a path with a hostile name finds no file:', () => {
  for (const name of REFUSED.filter((path) => path.isWellFormed() && path !== '')) {
    test(JSON.stringify(name).slice(0, 60), async () => {
      // Raw if it can be written so, and percent-encoded.
      const targets = [`/${encodeURIComponent(name)}`, ...(/^[\x21-\x7e]+$/.test(name) ? [`/${name}`] : [])];
      for (const target of targets) {
        const { status, body } = await ask(target);
        expect([200, 400, 404, 414, 431]).toContain(status);
        // A path that is normalized on the way may name a file of the site, and then it serves that file.
        if (status === 200) expect(Object.values(contents)).toContain(body);
        expect(String(body)).not.toContain('nobody');
        expect(String(body)).not.toContain('root:');
      }
    });
  }
});

test('sites: no request on its paths can upload or remove a file', async () => {
  for (const name of KEPT) {
    for (const method of ['PUT', 'DELETE', 'POST', 'PATCH']) {
      expect((await ask(`/${encodeURIComponent(name)}`, method)).status).toBeGreaterThanOrEqual(400);
    }
  }
  for (const [name, content] of Object.entries(contents)) {
    expect((await ask(`/${encodeURIComponent(name)}`)).body).toBe(content);
  }
});

test('sites: after all these requests no file outside of the site has changed, and no name became a path', async () => {
  expect(await Bun.file(sentinel).text()).toBe('nobody writes here');
  expect(await Bun.file(join(opened.config.data_directory, 'x')).text()).toBe('nobody reads this');
  const stored = await readdir(join(opened.config.data_directory, 'objects'), { recursive: true });
  const uploads = stored.filter((path) => path !== '.unfinished' && !path.startsWith('storage-marks'));
  expect(uploads.filter((path) => !/^[0-9a-f-]{36}(\/[0-9a-z.-]+)?$/.test(path))).toEqual([]);
});
