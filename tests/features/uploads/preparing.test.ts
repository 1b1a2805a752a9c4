import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { makeGame, type TestGame } from '../../support/game.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { listTree } from '../../support/tar.ts';
import { completion, prepareScript, sendPart } from '../../support/uploads.ts';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

let muster: TestService;
let game: TestGame;
beforeAll(async () => {
  muster = await openTestService();
  game = await makeGame(muster.api, muster.administrator_token);
});
afterAll(() => muster[Symbol.asyncDispose]());

/** Prepares a build of a file, which is JSON text. Returns status, code and message. */
async function prepare(kind: string, file: string) {
  const command = kind === 'archive' ? ',"command":["./server"]' : '';
  const { status, body } = await muster.api.call('POST', `/cloud/games/${game.game_id}/builds`, {
    token: game.cloud_token,
    body: `{"display_name":"Build","kind":"${kind}","image_file":${file}${command}}`,
  });
  return { is: `${status} ${body.code ?? 'prepared'}`, message: body.message };
}

const builds = async () =>
  (await muster.api.ok('GET', `/cloud/games/${game.game_id}/builds`, { token: game.cloud_token })).builds;

describe('prepare: a content type that no header can have is refused', () => {
  for (const content_type of [
    'text/html\r\nX-A: b',
    'text/html\n',
    'text/htmlä',
    'text/\u{1f600}',
    'a\u007f',
    'a\tb',
  ]) {
    test(JSON.stringify(content_type), async () => {
      const before = await builds();
      const file = { path: 'a.js', content_length: 1, content_type };
      expect(await prepare('javascript', JSON.stringify(file))).toEqual({
        is: '400 UPLOAD_INVALID',
        message:
          'The upload is invalid: the content_type of "a.js" must have only printable ASCII characters, like "text/html; charset=utf-8".',
      });
      expect(await builds()).toEqual(before);
    });
  }
});

describe('prepare: a length', () => {
  const WRONG = ['-1', '-0.5', '1.5', '"1"', 'null', 'true', '[1]', '1e400', '-1e400', '9007199254740992'];
  const HUGE = ['9223372036854775807', '18446744073709551615', '18446744073709551616', '1e300'];
  for (const content_length of [...WRONG, ...HUGE]) {
    test(`of ${content_length} is refused, because it is no length`, async () => {
      const before = await builds();
      const { is, message } = await prepare('javascript', `{"path":"a.js","content_length":${content_length}}`);
      expect(is).toBe('400 API_BAD_BODY');
      expect(message).toContain('"image_file.content_length"');
      expect(await builds()).toEqual(before);
    });
  }

  test('is required', async () => {
    expect(await prepare('javascript', '{"path":"a.js"}')).toMatchObject({ is: '400 API_BAD_BODY' });
  });

  const TOO_LARGE: [kind: string, most: number][] = [
    ['javascript', 64 * MIB],
    ['archive', 8 * GIB],
  ];
  for (const [kind, most] of TOO_LARGE) {
    for (const content_length of [most + 1, 2 ** 32, 2 ** 40, Number.MAX_SAFE_INTEGER].filter((one) => one > most)) {
      test(`of ${content_length} is refused for ${kind}, because it is above the limit of the kind`, async () => {
        const before = await builds();
        expect(await prepare(kind, `{"path":"a.js","content_length":${content_length}}`)).toEqual({
          is: '400 UPLOAD_TOO_LARGE',
          message: `The upload is larger than ${most} bytes. Upload a smaller file.`,
        });
        expect(await builds()).toEqual(before);
      });
    }

    test(`of ${most} is accepted for ${kind}`, async () => {
      expect(await prepare(kind, `{"path":"a.js","content_length":${most}}`)).toMatchObject({ is: '200 prepared' });
    });
  }
});

describe('prepare: a path is refused', () => {
  const scrambled = Array.from({ length: 400 }, (_, index) => String.fromCharCode(0x4e00 + index * 37)).join('');
  const CASES: [what: string, path: string, is: string][] = [
    ['none', '', '400 API_BAD_BODY'],
    ['with the character zero', 'a\0.js', '400 API_BAD_BODY'],
    ['with half a surrogate pair', '\ud800.js', '400 API_BAD_BODY'],
    ['of 1025 characters', `${'a'.repeat(1_022)}.js`, '400 API_BAD_BODY'],
    ['of 1203 bytes in 403 characters', `${scrambled}.js`, '400 UPLOAD_INVALID'],
  ];
  for (const [what, path, is] of CASES) {
    test(what, async () => {
      expect(await prepare('javascript', JSON.stringify({ path, content_length: 1 }))).toMatchObject({ is });
    });
  }
});

describe('prepare: a path is only a name, whatever it looks like', () => {
  const PATHS = [
    '../../outside.js',
    '/etc/passwd.js',
    '..%2f..%2foutside.js',
    '%2e%2e/outside.js',
    '..\\..\\outside.js',
    '&signature=x&length=9.js',
    '?#&=+ %.js',
    'line\r\nbreak: x.js',
    '\u202esj.exe.js',
    'CON.js',
    '.js',
    `${'a'.repeat(1_021)}.js`,
    `${'表'.repeat(340)}.js`,
  ];
  for (const path of PATHS) {
    test(JSON.stringify(path.slice(0, 30)), async () => {
      const { upload_id, requests } = await prepareScript(muster, game, { path });
      const [request] = requests;
      if (!request) throw new Error('a file has a request');
      expect(request).toMatchObject({ path, byte_offset: 0, content_length: 1 });
      expect(await sendPart(request, 'x')).toBe('200 accepted');
      expect(await completion(muster, { upload_id }, game.cloud_token)).toBe('200 complete');
      const objects = join(muster.config.data_directory, 'objects');
      const tree = Object.entries(await listTree(join(objects, upload_id)));
      expect(tree).toEqual([[expect.stringMatching(/^0\.0\.[0-9a-f-]{36}$/), 'file 600']]);
      expect(readdirSync(objects).every((name) => /^(\.unfinished|storage-marks|[0-9a-f-]{36})$/.test(name))).toBe(
        true,
      );
    });
  }
});

test('prepare: an empty file is uploaded by one empty request', async () => {
  const { upload_id, requests } = await prepareScript(muster, game, { content_length: 0 });
  expect(requests).toMatchObject([{ byte_offset: 0, content_length: 0 }]);
  expect(await completion(muster, { upload_id }, game.cloud_token)).toBe('400 UPLOAD_INCOMPLETE');
  expect(await Promise.all(requests.map((request) => sendPart(request, 'x')))).toEqual(['400 UPLOAD_LENGTH_MISMATCH']);
  expect(await Promise.all(requests.map((request) => sendPart(request, '')))).toEqual(['200 accepted']);
  expect(await completion(muster, { upload_id }, game.cloud_token)).toBe('200 complete');
});
