import { beforeAll, describe, expect, test } from 'bun:test';
import { buildsOf, SCRIPT } from '../../support/builds.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const muster = shareService();
let game: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
});

const ARCHIVE = { ...SCRIPT, kind: 'archive', command: ['./server'] };
const UNNAMED_KIND = { kind: undefined };
const of = (path: string) => ({ image_file: { path, content_length: 1 } });

/** What both ways to announce a build say of one; they must not differ. */
async function prepare({ name, ...members }: Partial<typeof ARCHIVE> & object) {
  const token = game.cloud_token;
  const here = await buildsOf(muster, game).prepare({ name, ...members });
  const cloud = await muster.api.post(`/cloud/games/${game.game_id}/builds`, token, { display_name: name, ...members });
  expect(outcomeOf(cloud)).toBe(outcomeOf(here));
  if (here.status !== 200 && here.body.code !== 'API_BAD_BODY') expect(cloud.body.message).toBe(here.body.message);
  return here;
}

describe('a build is refused, and not listed,', () => {
  const NOT_AVAILABLE = (kind: string) => ({
    code: 'BUILDS_KIND_NOT_AVAILABLE',
    message: `This service cannot run builds of kind "${kind}". Use one of: archive, javascript.`,
  });
  const INVALID = (error: string) => ({
    code: 'BUILDS_BUILD_INVALID',
    message: `The build is invalid: ${error}.`,
  });
  const UNNAMED = (problem: string) => ({
    code: 'VALIDATION_ERROR',
    metadata: { errors: [{ path: ['display-name', problem] }] },
  });
  const BAD_BODY = { code: 'API_BAD_BODY' };
  const NO_SCRIPT = INVALID('the file name of a javascript build must end in .js, .mjs, .cjs or .ts');
  const NO_COMMAND = INVALID('an archive needs a command, for example ["./server"]');
  const UNKNOWN_KIND = INVALID(
    'its kind cannot be inferred from its file name. Send "kind": "javascript" for one .js or .ts file, "archive" for a tar',
  );
  const OUTSIDE = INVALID('its command is outside the archive; start a program inside it');

  const CASES: [what: string, body: object, refusal: object][] = [
    ['of a container', { ...SCRIPT, kind: 'docker_image' }, NOT_AVAILABLE('docker_image')],
    ['of a bundle', { ...SCRIPT, kind: 'oci_bundle', compression: 'lz4' }, NOT_AVAILABLE('oci_bundle')],
    [
      'of no kind, with an image tag, which is a container',
      { ...SCRIPT, ...UNNAMED_KIND, ...of('image.tar'), image_tag: 'a:b' },
      NOT_AVAILABLE('docker_image'),
    ],
    [
      'of no kind, by the name of an archive, without a command',
      { ...SCRIPT, ...UNNAMED_KIND, ...of('server.tar.gz') },
      NO_COMMAND,
    ],
    ['of no kind, by a name that tells none', { ...SCRIPT, ...UNNAMED_KIND, ...of('server') }, UNKNOWN_KIND],
    ['of a kind that does not exist', { ...SCRIPT, kind: 'wasm' }, BAD_BODY],
    ['of a kind that every object has', { ...SCRIPT, kind: 'constructor' }, BAD_BODY],
    ['of a compression that does not exist', { ...SCRIPT, compression: 'rar' }, BAD_BODY],
    ['without a file', { name: 'Build', kind: 'javascript' }, BAD_BODY],
    ['of a script without a language', { ...SCRIPT, ...of('server') }, NO_SCRIPT],
    ['of a script in another language', { ...SCRIPT, ...of('server.py') }, NO_SCRIPT],
    ['of a script that only begins like one', { ...SCRIPT, ...of('server.js.txt') }, NO_SCRIPT],
    ['of an archive without a command', { ...ARCHIVE, command: undefined }, NO_COMMAND],
    ['with an empty command', { ...ARCHIVE, command: [] }, BAD_BODY],
    ['with a command that is a text', { ...ARCHIVE, command: './server' }, BAD_BODY],
    ['with an empty word in its command', { ...ARCHIVE, command: ['./server', ''] }, BAD_BODY],
    ['with the character zero in its command', { ...ARCHIVE, command: ['./a\0b'] }, BAD_BODY],
    ['with a word of 513 letters', { ...ARCHIVE, command: ['x'.repeat(513)] }, BAD_BODY],
    ['with 65 words', { ...ARCHIVE, command: Array(65).fill('x') }, BAD_BODY],
    ['with a command outside', { ...ARCHIVE, command: ['../server'] }, OUTSIDE],
    ['with a command outside on a detour', { ...ARCHIVE, command: ['./bin/../../server'] }, OUTSIDE],
    ['without a name', { ...SCRIPT, name: undefined }, BAD_BODY],
    ['with an empty name', { ...SCRIPT, name: '' }, UNNAMED('too-short')],
    ['with a name of 129 bytes', { ...SCRIPT, name: `${'ä'.repeat(64)}x` }, UNNAMED('too-long')],
    ['with a name of two lines', { ...SCRIPT, name: 'a\nb' }, UNNAMED('invalid')],
    ['with a name that turns the text around', { ...SCRIPT, name: 'a\u202eb' }, UNNAMED('invalid')],
    ['with a name of blanks', { ...SCRIPT, name: ' ' }, UNNAMED('invalid')],
  ];
  for (const [what, body, refusal] of CASES) {
    test(what, async () => {
      const before = await buildsOf(muster, game).list();
      const { status, body: said } = await prepare(body);
      expect(status).toBe(400);
      expect(said).toMatchObject(refusal);
      expect((await buildsOf(muster, game).list()).body).toEqual(before.body);
    });
  }
});

describe('a build is announced', () => {
  const CASES: [what: string, body: object][] = [
    ...['js', 'mjs', 'cjs', 'ts', 'mts', 'cts'].map((ending): [string, object] => [
      `of a script that ends in .${ending}`,
      { ...SCRIPT, ...of(`server.${ending}`) },
    ]),
    ['of no kind, by the name of a script', { ...SCRIPT, ...UNNAMED_KIND, ...of('server.ts') }],
    ...['tar', 'tar.gz', 'tar.zst', 'tgz'].map((ending): [string, object] => [
      `of no kind, by the name of an archive that ends in .${ending}`,
      { ...ARCHIVE, ...UNNAMED_KIND, ...of(`server.${ending}`) },
    ]),
    ['with a name of 128 bytes', { ...SCRIPT, name: 'ä'.repeat(64) }],
    ['with a command of the machine', { ...ARCHIVE, command: ['python3', 'server.py'] }],
    ['with a command at a place of the machine', { ...ARCHIVE, command: ['/usr/bin/env', 'python3'] }],
    ['with 64 words of 512 letters', { ...ARCHIVE, command: Array(64).fill('x'.repeat(512)) }],
    ['with what the field says of containers', { ...SCRIPT, image_tag: 'server:1', compression: 'lz4' }],
  ];
  test.each(CASES)('%s', async (_, body) => {
    expect(outcomeOf(await prepare(body))).toBe('200');
  });

  test('with one request to send it by, or a list of them where parts are wanted', async () => {
    const url = expect.stringMatching(/^http:.*\/uploads\/.*&length=1&.*&signature=/);
    const request = { path: 'server.js', url, byte_offset: 0, content_length: 1 };
    const builds = buildsOf(muster, game);
    const build = expect.stringMatching(/^[0-9a-f-]{36}$/);
    expect((await builds.prepare(SCRIPT)).body).toEqual({ build, image_presigned_request: request });
    expect((await builds.prepare({ ...SCRIPT, multipart_upload: true })).body).toEqual({
      build,
      image_presigned_requests: [request],
    });
    const { name: display_name, ...members } = SCRIPT;
    const cloud = { token: game.cloud_token, body: { display_name, ...members } };
    expect(await muster.api.ok('POST', `/cloud/games/${game.game_id}/builds`, cloud)).toEqual({
      build_id: build,
      upload_id: build,
      image_presigned_request: request,
    });
  });
});
