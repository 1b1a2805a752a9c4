import { beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { buildsOf, directoryOfBuild, sendArchive } from '../../support/builds.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { listTree, packTar, rawEntry, TAR_END, type TarEntry } from '../../support/tar.ts';
import { PACKINGS } from '../../support/unpacking.ts';

const muster = shareService();
let game: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
});

const SERVER: TarEntry = { name: './server', content: '#!/bin/sh\nexec sleep 60\n', mode: 0o755 };
const directory = () => join(muster.config.data_directory, 'builds');
const unpacked = (build_id: string) => directoryOfBuild(muster, build_id);
const isComplete = async (build_id: string): Promise<boolean> => {
  const { body } = await muster.api.get(`/cloud/games/${game.game_id}/builds`, game.cloud_token);
  return body.builds.find((build: { build_id: string }) => build.build_id === build_id).complete;
};
const deliver = async (content: Uint8Array, command?: string[]) =>
  await sendArchive(muster, game, new Uint8Array(content), command);

describe('a refused archive leaves nothing, and its build is not complete:', () => {
  const CASES: [what: string, archive: Buffer, error: string][] = [
    ['an empty archive', TAR_END, 'it is empty, or not a tar'],
    ['an empty file', Buffer.alloc(0), 'it is empty, or not a tar'],
    ['a script', Buffer.from('#!/bin/sh\n'), 'it is not a tar, or is damaged'],
    [
      'a file outside',
      Buffer.concat([rawEntry({ name: '../escaped', content: 'x' }), TAR_END]),
      '"../escaped" is not a plain path inside the archive',
    ],
    [
      'a link to files of the service, and a file through it',
      Buffer.concat([rawEntry({ name: 'objects', type: '2', linkname: '../../objects' }), TAR_END]),
      '"objects" is a link to "../../objects"; pack the file itself (tar --dereference)',
    ],
    [
      'a decompression bomb',
      Buffer.concat([
        gzipSync(rawEntry({ name: 'zeros', size: 2 ** 30 })),
        ...Array<Buffer>(6).fill(gzipSync(Buffer.alloc(2 ** 24))),
      ]),
      'it unpacks to more than',
    ],
  ];
  test.each(CASES)('%s', async (_, archive, error) => {
    const before = readdirSync(directory());
    const { build_id, complete } = await deliver(archive);
    const { status, body } = await complete();
    expect([status, body.code]).toEqual([400, 'BUILDS_BUILD_INVALID']);
    expect(body.message).toStartWith(`The build is invalid: ${error}`);
    expect(body.message).not.toContain(muster.config.data_directory);
    expect(await isComplete(build_id)).toBe(false);
    expect(readdirSync(directory())).toEqual(before);
    expect(existsSync(join(muster.config.data_directory, 'escaped'))).toBe(false);
  });

  test('archives: a refused one may be replaced by another upload', async () => {
    const damaged = await packTar([SERVER, SERVER]);
    const whole = Buffer.concat([await packTar([SERVER]), TAR_END]);
    expect(whole.length).toBe(damaged.length);
    const { build_id, send, complete } = await deliver(damaged);
    for (const time of ['once', 'twice']) {
      expect(`${time}: ${(await complete()).body.message}`).toBe(
        `${time}: The build is invalid: "./server" occurs twice.`,
      );
    }
    await send(new Uint8Array(whole));
    expect(outcomeOf(await complete())).toBe('200');
    expect(await listTree(unpacked(build_id))).toEqual({ server: 'file 755' });
  });
});

describe('archives: the command', () => {
  const tree: TarEntry[] = [
    SERVER,
    { name: 'bin/', type: 'directory', mode: 0o755 },
    { name: 'bin/tool', content: '#!/bin/sh\n', mode: 0o755 },
    { name: 'notes', content: 'x' },
  ];
  const REFUSED: [command: string, problem: string][] = [
    ['./missing', 'is not a file in the archive'],
    ['bin/missing', 'is not a file in the archive'],
    ['./bin', 'is not a file in the archive'],
    ['./', 'is not a file in the archive'],
    ['./server/', 'is not a file in the archive'],
    ['./notes/server', 'is not a file in the archive'],
    [`./${'x'.repeat(300)}`, 'is not a file in the archive'],
    ['./SERVER', 'is not a file in the archive'],
    ['./notes', 'is not executable; run chmod +x before packing it'],
  ];
  test.each(REFUSED)('%s is refused', async (command, problem) => {
    const { build_id, complete } = await deliver(await packTar(tree), [command, '--fast']);
    const { status, body } = await complete();
    expect([status, body.code, body.message]).toEqual([
      400,
      'BUILDS_BUILD_INVALID',
      `The build is invalid: the command ${JSON.stringify(command)} ${problem}.`,
    ]);
    expect(await isComplete(build_id)).toBe(false);
    expect(existsSync(unpacked(build_id))).toBe(false);
  });

  const TAKEN = ['./server', 'bin/tool', './bin/tool', './/bin/./tool', 'sh', 'tool', '/bin/sh', '/nowhere'];
  test.each(TAKEN)('%s is accepted', async (command) => {
    const { complete } = await deliver(await packTar(tree), [command]);
    expect(outcomeOf(await complete())).toBe('200');
  });
});

describe('a complete archive', () => {
  test.each(Object.entries(PACKINGS))('is unpacked once and whole, as %s, readable for others', async (_, compress) => {
    const tar = await packTar([SERVER, { name: 'maps/desert', content: 'sand' }]);
    const { build_id, complete } = await deliver(compress(tar));
    expect(outcomeOf(await complete())).toBe('200');
    expect(await isComplete(build_id)).toBe(true);
    expect(await listTree(unpacked(build_id))).toEqual({
      server: 'file 755',
      maps: 'folder 755',
      'maps/desert': 'file 644',
    });
    expect((statSync(unpacked(build_id)).mode & 0o777).toString(8)).toBe('755');
    const { uid } = statSync(unpacked(build_id));
    expect(uid).toBe(process.getuid?.() ?? -1);
    expect(readdirSync(directory()).filter((name) => name.endsWith('unfinished'))).toEqual([]);
  });

  test('is unpacked by one of several concurrent completions', async () => {
    const { build_id, complete } = await deliver(
      await packTar([SERVER, ...Array.from({ length: 50 }, (_, n) => ({ name: `maps/${n}`, content: `${n}` }))]),
    );
    const answers = await Promise.all(Array.from({ length: 8 }, complete));
    for (const answer of answers) expect(outcomeOf(answer)).toMatch(/^(200|503 UPLOAD_BUSY)$/);
    expect(outcomeOf(await complete())).toBe('200');
    expect(Object.keys(await listTree(unpacked(build_id)))).toHaveLength(52);
    expect(readdirSync(directory()).filter((name) => name.startsWith(build_id))).toEqual([build_id]);
  });

  test('of one environment does not exist in another', async () => {
    const { build_id, complete } = await deliver(await packTar([SERVER]));
    const staging = buildsOf(muster, game, { environment_id: game.staging_id });
    expect(outcomeOf(await staging.complete(build_id))).toBe('404 BUILDS_BUILD_NOT_FOUND');
    expect(existsSync(unpacked(build_id))).toBe(false);
    expect(outcomeOf(await complete())).toBe('200');
  });
});
