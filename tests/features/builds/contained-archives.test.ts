import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openBaseImage } from '../../../src/features/builds/builds.ts';
import { StartError } from '../../../src/platform/errors.ts';
import { buildsOf } from '../../support/builds.ts';
import { makeGame, type TestGame, uploadBuild } from '../../support/game.ts';
import { rejectionOf } from '../../support/refusal.ts';
import { IMAGE_USER, packImage, WITHOUT_CONTAINERS } from '../../support/runtimes/containers.ts';
import { dockerLayout } from '../../support/runtimes/images.ts';
import { serversOf, waitForEndEvent } from '../../support/servers.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { outcomeOf } from '../../support/suite.ts';
import { packTar, type TarEntry } from '../../support/tar.ts';

const TEST_TIMEOUT_MS = 300_000;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'muster-base-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the base image of archives', () => {
  const open = (file: string, directory = folder) => openBaseImage({ file, directory });
  const REFUSED: [what: string, make: () => Promise<Uint8Array>, reason: string][] = [
    ['is no tar', async () => Buffer.from('image'), 'is not a usable image: '],
    ['is no image', () => packTar([{ name: 'a', content: 'b' }]), 'it was not made by "docker save"'],
    [
      'is for another platform',
      async () => packTar(await dockerLayout({ layers: [[]], architecture: 'mips' })),
      'its image is for "linux/mips"',
    ],
  ];
  test.each(REFUSED)('is refused at the start if it %s', async (_, make, reason) => {
    const file = join(folder, 'base.tar');
    await Bun.write(file, await make());
    expect((await rejectionOf(StartError, open(file))).message).toContain(reason);
    expect(readdirSync(folder).filter((name) => !name.endsWith('.unfinished'))).toEqual(['base.tar']);
  });

  test('is refused at the start if there is no such file', async () => {
    expect((await rejectionOf(StartError, open('/nowhere/base.tar'))).message).toStartWith(
      'MUSTER_CONTAINER_BASE is "/nowhere/base.tar", which is not a usable image: ENOENT',
    );
  });

  test('is not blamed at the start for a directory that takes no files', async () => {
    const file = join(folder, 'good.tar');
    await Bun.write(file, await packTar(await dockerLayout({ layers: [[]] })));
    const directory = join(folder, 'nowhere', 'builds');
    expect((await rejectionOf(StartError, open(file, directory))).message).toStartWith(
      `The image of MUSTER_CONTAINER_BASE cannot be unpacked to ${directory}: ENOENT`,
    );
    await rm(file);
  });

  test('is unpacked once, and again after the file was replaced', async () => {
    const [file, directory] = [join(folder, 'base.tar'), await mkdtemp(join(folder, 'builds-'))];
    const pack = async (content: string) =>
      Bun.write(file, await packTar(await dockerLayout({ layers: [[{ name: 'release', content }]] })));
    await pack('1');
    const first = await open(file, directory);
    const written = statSync(first.directory).ino;
    expect(statSync((await open(file, directory)).directory).ino).toBe(written);
    await pack('second');
    const second = await open(file, directory);
    expect(second.key).not.toBe(first.key);
    expect(await Bun.file(join(second.directory, 'rootfs/release')).text()).toBe('second');
    expect(existsSync(first.directory)).toBe(false);
  });

  test('is found whole or not at all while it is removed', async () => {
    const [file, directory] = [join(folder, 'base.tar'), await mkdtemp(join(folder, 'builds-'))];
    const pack = async (layer: TarEntry[]) => Bun.write(file, await packTar(await dockerLayout({ layers: [layer] })));
    const entries = Array.from({ length: 3_000 }, (_, n) => ({ name: `${n}`, content: '' }));
    await pack(entries);
    const first = await open(file, directory);
    await pack([{ name: 'release', content: 'second' }]);
    let is_open = false;
    const second = open(file, directory).finally(() => {
      is_open = true;
    });
    const counts = new Set<number>();
    while (!is_open) {
      const names = await readdir(join(first.directory, 'rootfs')).catch(() => undefined);
      // A list that was begun before the removal may end during it.
      if (names && existsSync(first.directory)) counts.add(names.length);
    }
    await second;
    expect([...counts]).toEqual([entries.length]);
    expect(readdirSync(directory)).toHaveLength(1);
  });
});

describe.skipIf(WITHOUT_CONTAINERS !== undefined)('an archive with isolation container', () => {
  let muster: TestService;
  let game: TestGame;
  beforeAll(async () => {
    const file = join(folder, 'busybox.tar');
    await Bun.write(file, await packImage('echo the base image', 'base:1'));
    muster = await openTestService({ MUSTER_CONTAINERS: 'on', MUSTER_CONTAINER_BASE: file });
    game = await makeGame(muster.api, muster.administrator_token);
  }, TEST_TIMEOUT_MS);
  afterAll(() => muster[Symbol.asyncDispose](), TEST_TIMEOUT_MS);

  const SCRIPT = `#!/bin/sh
id -u; pwd; cat map; echo "$*";
grep CapEff /proc/self/status; echo x > map || echo x > /tmp/map && exit 5`;
  const upload = async (command: string[], isolation = 'container') => {
    const content = await packTar([
      { name: 'bin/server', content: SCRIPT, mode: 0o755 },
      { name: 'map', content: 'desert\n' },
    ]);
    return await uploadBuild(muster.api, game, { kind: 'archive', path: 'a.tar', content, command, isolation });
  };

  test(
    'runs on the files and as the user of the base image, with the archive in /server',
    async () => {
      const build = await upload(['./bin/server', '--fast']);
      const servers = serversOf(muster, game);
      for (let time = 0; time < 2; time += 1) {
        const created = await servers.create(await servers.bodyOf(build, { runtime: { arguments: ['--two'] } }));
        const { id } = created.body.server;
        expect(await waitForEndEvent(muster, id)).toMatchObject({ exit_code: 5, failure: null });
        expect(await servers.linesOf(id)).toEqual([
          String(IMAGE_USER),
          '/server',
          'desert',
          '--fast --two',
          'CapEff:\t0000000000000000',
        ]);
      }
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'shares the files of the base image on the disk with others',
    async () => {
      const folders = join(muster.config.data_directory, 'builds');
      const inodeOf = (build: string) => {
        const [content = ''] = readdirSync(join(folders, build));
        return statSync(join(folders, build, content, 'rootfs/bin/busybox')).ino;
      };
      const [one, other] = [await upload(['/bin/sh']), await upload(['/bin/sh'])];
      expect(inodeOf(one)).toBe(inodeOf(other));
    },
    TEST_TIMEOUT_MS,
  );

  test('is refused if its program is not in the archive', async () => {
    await expect(upload(['./bin/busybox'])).rejects.toThrow('is not a file in the archive');
  });

  test(
    'is refused where the operator has set no base image, with what to set',
    async () => {
      await using other = await openTestService({ MUSTER_CONTAINERS: 'on' });
      const place = await makeGame(other.api, other.administrator_token);
      const answer = await buildsOf(other, place).prepare({
        name: 'Server',
        kind: 'archive',
        isolation: 'container',
        command: ['./server'],
        image_file: { path: 'a.tar', content_length: 1 },
      });
      expect(outcomeOf(answer)).toBe('400 BUILDS_KIND_NOT_AVAILABLE');
      expect(answer.body.message).toContain('MUSTER_CONTAINER_BASE');
    },
    TEST_TIMEOUT_MS,
  );
});
