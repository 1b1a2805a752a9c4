import { beforeAll, describe, expect, test } from 'bun:test';
import { buildsOf, SCRIPT } from '../../support/builds.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { sendPart } from '../../support/uploads.ts';

const muster = shareService();
let game: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
});

const ARCHIVE = { ...SCRIPT, kind: 'archive', command: ['./server'] };
const NO_KIND = { kind: undefined };
const withFile = (path: string) => ({ image_file: { path, content_length: 1 } });

/** Prepares a build in both APIs, which must agree. */
async function prepare({ name, ...members }: Partial<typeof ARCHIVE> & object) {
  const token = game.cloud_token;
  const here = await buildsOf(muster, game).prepare({ name, ...members });
  const cloud = await muster.api.post(`/cloud/games/${game.game_id}/builds`, token, { display_name: name, ...members });
  expect(outcomeOf(cloud)).toBe(outcomeOf(here));
  if (here.status !== 200 && here.body.code !== 'API_BAD_BODY') expect(cloud.body.message).toBe(here.body.message);
  return here;
}

describe('a build is refused, and not listed,', () => {
  const notAvailable = (kind: string) => ({
    code: 'BUILDS_KIND_NOT_AVAILABLE',
    message: `This service cannot run builds of kind "${kind}": its operator turned containers off. Use one of: archive, javascript.`,
  });
  const invalid = (error: string) => ({
    code: 'BUILDS_BUILD_INVALID',
    message: `The build is invalid: ${error}.`,
  });
  const unnamed = (problem: string) => ({
    code: 'VALIDATION_ERROR',
    metadata: { errors: [{ path: ['display-name', problem] }] },
  });
  const BAD_BODY = { code: 'API_BAD_BODY' };
  const NO_SCRIPT = invalid('the file name of a javascript build must end in .js, .mjs, .cjs, .ts, .mts or .cts');
  const NO_COMMAND = invalid('an archive needs a command, for example ["./server"]');
  const UNKNOWN_KIND = invalid(
    'its kind cannot be inferred from its file name. Send a "kind": javascript for one .js or .ts file, archive for a tar with a command, docker_image or oci_bundle for a container',
  );
  const OUTSIDE = invalid('its command is outside the archive; start a program inside it');

  const CASES: [what: string, body: object, refusal: object][] = [
    ['for a container image', { ...SCRIPT, kind: 'docker_image' }, notAvailable('docker_image')],
    ['for an OCI bundle', { ...SCRIPT, kind: 'oci_bundle', compression: 'lz4' }, notAvailable('oci_bundle')],
    [
      'without a kind, with an image tag, which means a container',
      { ...SCRIPT, ...NO_KIND, ...withFile('image.tar'), image_tag: 'a:b' },
      notAvailable('docker_image'),
    ],
    ...['image.tar', 'image.tar.lz4', 'out/image.tar.gz'].map((path): [string, object, object] => [
      `without a kind, with the file name ${path} of a client of Rivet`,
      { ...SCRIPT, ...NO_KIND, ...withFile(path) },
      notAvailable('docker_image'),
    ]),
    [
      'without a kind, with the file name of a bundle of Rivet, with an image tag or without',
      { ...SCRIPT, ...NO_KIND, ...withFile('oci-bundle.tar.lz4'), image_tag: 'a:b' },
      notAvailable('oci_bundle'),
    ],
    [
      'without a kind, with the file name of an archive, without a command',
      { ...SCRIPT, ...NO_KIND, ...withFile('server.tar.gz') },
      NO_COMMAND,
    ],
    [
      'without a kind, with a file name that implies none',
      { ...SCRIPT, ...NO_KIND, ...withFile('server') },
      UNKNOWN_KIND,
    ],
    ['with an unknown kind', { ...SCRIPT, kind: 'wasm' }, BAD_BODY],
    ['with a kind that is a property of every object', { ...SCRIPT, kind: 'constructor' }, BAD_BODY],
    ...['process', 'container'].map((isolation): [string, object, object] => [
      `of a script with isolation ${isolation}`,
      { ...SCRIPT, isolation },
      invalid('only an archive has an isolation, and this is a build of kind javascript; leave isolation out'),
    ]),
    [
      'of a script with a command',
      { ...SCRIPT, command: ['--map=beach'] },
      invalid('a javascript build has no command, because its script is run; give the version arguments instead'),
    ],
    ['of an archive with an unknown isolation', { ...ARCHIVE, isolation: 'full' }, BAD_BODY],
    [
      'of an archive with isolation container, where no container runs',
      { ...ARCHIVE, isolation: 'container' },
      notAvailable('archive in a container'),
    ],
    ['with an unknown compression', { ...SCRIPT, compression: 'rar' }, BAD_BODY],
    ['without a file', { name: 'Build', kind: 'javascript' }, BAD_BODY],
    ['for a script without an extension', { ...SCRIPT, ...withFile('server') }, NO_SCRIPT],
    ['for a script in another language', { ...SCRIPT, ...withFile('server.py') }, NO_SCRIPT],
    ['for a script whose extension only begins like one', { ...SCRIPT, ...withFile('server.js.txt') }, NO_SCRIPT],
    ['for an archive without a command', { ...ARCHIVE, command: undefined }, NO_COMMAND],
    ['with an empty command', { ...ARCHIVE, command: [] }, BAD_BODY],
    ['with a command that is a string', { ...ARCHIVE, command: './server' }, BAD_BODY],
    ['with an empty argument in its command', { ...ARCHIVE, command: ['./server', ''] }, BAD_BODY],
    ['with the character zero in its command', { ...ARCHIVE, command: ['./a\0b'] }, BAD_BODY],
    ['with an argument of 513 characters', { ...ARCHIVE, command: ['x'.repeat(513)] }, BAD_BODY],
    ['with 65 arguments', { ...ARCHIVE, command: Array(65).fill('x') }, BAD_BODY],
    ['with a command outside the archive', { ...ARCHIVE, command: ['../server'] }, OUTSIDE],
    ['with a command that leads outside indirectly', { ...ARCHIVE, command: ['./bin/../../server'] }, OUTSIDE],
    ['without a name', { ...SCRIPT, name: undefined }, BAD_BODY],
    ['with an empty name', { ...SCRIPT, name: '' }, unnamed('too-short')],
    ['with a name of 129 bytes', { ...SCRIPT, name: `${'ä'.repeat(64)}x` }, unnamed('too-long')],
    ['with a name of two lines', { ...SCRIPT, name: 'a\nb' }, unnamed('invalid')],
    ['with a name that reverses the direction of the text', { ...SCRIPT, name: 'a\u202eb' }, unnamed('invalid')],
    ['with a name of spaces', { ...SCRIPT, name: ' ' }, unnamed('invalid')],
  ];
  for (const [what, body, refusal] of CASES) {
    test(what, async () => {
      const before = await buildsOf(muster, game).list();
      const answer = await prepare(body);
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject(refusal);
      expect((await buildsOf(muster, game).list()).body).toEqual(before.body);
    });
  }
});

describe('a build is prepared', () => {
  const CASES: [what: string, body: object][] = [
    ...['js', 'mjs', 'cjs', 'ts', 'mts', 'cts'].map((ending): [string, object] => [
      `of a script that ends in .${ending}`,
      { ...SCRIPT, ...withFile(`server.${ending}`) },
    ]),
    ['without a kind, with the file name of a script', { ...SCRIPT, ...NO_KIND, ...withFile('server.ts') }],
    ...['tar', 'tar.gz', 'tar.zst', 'tar.lz4', 'tgz'].map((ending): [string, object] => [
      `of no kind, by the name of an archive that ends in .${ending}`,
      { ...ARCHIVE, ...NO_KIND, ...withFile(`server.${ending}`) },
    ]),
    [
      'without a kind, with a command and the file name image.tar',
      { ...ARCHIVE, ...NO_KIND, ...withFile('image.tar') },
    ],
    ['of an archive with isolation process', { ...ARCHIVE, isolation: 'process' }],
    ['with a name of 128 bytes', { ...SCRIPT, name: 'ä'.repeat(64) }],
    ["with a command from the machine's PATH", { ...ARCHIVE, command: ['python3', 'server.py'] }],
    ['with an absolute path on the machine as its command', { ...ARCHIVE, command: ['/usr/bin/env', 'python3'] }],
    ['with 64 arguments of 512 characters', { ...ARCHIVE, command: Array(64).fill('x'.repeat(512)) }],
    ["with the reference API's members for containers", { ...SCRIPT, image_tag: 'server:1', compression: 'lz4' }],
  ];
  test.each(CASES)('%s', async (_, body) => {
    expect(outcomeOf(await prepare(body))).toBe('200');
  });

  test('with members of its file that mean nothing, such as the digest of a file of a site', async () => {
    const image_file = { path: 'server.js', content_length: 1, sha256: 'a'.repeat(64) };
    const { body } = await buildsOf(muster, game).prepare({ ...SCRIPT, image_file });
    expect(await sendPart(body.image_presigned_request, 'x')).toBe('200 accepted');
  });

  test('with one upload request, or with a list of them for parts', async () => {
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
