import { describe, expect, test } from 'bun:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import type { Process } from '../../../src/features/builds/containers/bundle.ts';
import { sha256 } from '../../support/objects/digest.ts';
import {
  ARCHITECTURE,
  dockerLayout,
  type ImageParts,
  ociLayout,
  UNTOUCHED,
  unpackContainer,
} from '../../support/runtimes/images.ts';
import { packTar, type TarEntry } from '../../support/tar.ts';
import { PACKINGS } from '../../support/unpacking.ts';

const IS_ROOT = process.getuid?.() === 0;
const SERVER: TarEntry = { name: 'server', content: '#!/bin/sh\n', mode: 0o755 };
const ROOM: ImageParts = {
  tags: ['room:1'],
  layers: [
    [SERVER, { name: 'etc/', type: 'directory' }, { name: 'etc/passwd', content: 'root:x:0:0::/root:/bin/sh\n' }],
  ],
};

/** The layouts that programs write. */
const LAYOUTS: Record<string, (...images: ImageParts[]) => Promise<TarEntry[]>> = {
  'the layout of Docker until 24': dockerLayout,
  'the layout of Docker since 25': (...images) => ociLayout(images, { with_manifest: true }),
  'the OCI layout': (...images) => ociLayout(images),
};

describe.each(Object.entries(LAYOUTS))('images: %s', (_, layoutOf) => {
  for (const [packing, compress] of Object.entries(PACKINGS)) {
    test(`is unpacked from a ${packing}, as a bundle of OCI and nothing else`, async () => {
      const unpacked = await unpackContainer(compress(await packTar(await layoutOf(ROOM))));
      expect(unpacked.refusal).toBeUndefined();
      expect(unpacked.tree).toEqual({ etc: 'folder 755', 'etc/passwd': 'file 644', server: 'file 755' });
      expect(unpacked.contents.server).toBe('#!/bin/sh\n');
      expect(unpacked.config).toEqual({
        ociVersion: '1.0.2',
        process: {
          args: ['/server'],
          env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/root'],
          cwd: '/',
          user: { uid: 0, gid: 0, additionalGids: [] },
        },
        root: { path: 'rootfs' },
      });
      expect(unpacked.others).toEqual([]);
      expect(unpacked.outside).toEqual(UNTOUCHED);
    });
  }

  test('is unpacked with layers in gzip, zstd and plain', async () => {
    for (const compress of [gzipSync, zstdCompressSync, (tar: Uint8Array) => tar]) {
      const { refusal, tree } = await unpackContainer(await packTar(await layoutOf({ ...ROOM, compress })));
      expect(refusal).toBeUndefined();
      expect(Object.keys(tree)).toEqual(['etc', 'etc/passwd', 'server']);
    }
  });

  test('has an image chosen by image_tag', async () => {
    const other = { ...ROOM, tags: ['docker.io/library/other:latest'], config: { Cmd: ['/other'] } };
    const tar = await packTar(await layoutOf(ROOM, other));
    const chosen = async (image_tag: string) => (await unpackContainer(tar, { image_tag })).config?.process.args;
    expect(await chosen('room:1')).toEqual(['/server']);
    for (const image_tag of ['other', 'other:latest', 'docker.io/library/other', 'docker.io/library/other:latest']) {
      expect(await chosen(image_tag)).toEqual(['/other']);
    }
    expect((await unpackContainer(tar)).refusal).toBe(
      'it has 2 images, and no image_tag says which: "room:1", "docker.io/library/other:latest".',
    );
    expect((await unpackContainer(tar, { image_tag: 'room:2' })).refusal).toBe(
      'none of its 2 images has the tag "room:2"; it has: "room:1", "docker.io/library/other:latest".',
    );
    const twins = await packTar(await layoutOf(ROOM, { ...ROOM, config: { Cmd: ['/other'] } }));
    expect((await unpackContainer(twins, { image_tag: 'room:1' })).refusal).toBe(
      'it has 2 images with the tag "room:1".',
    );
    // An archive with one image needs no tag, so a wrong one has no effect.
    const only = await packTar(await layoutOf(ROOM));
    expect((await unpackContainer(only, { image_tag: 'renamed:7' })).refusal).toBeUndefined();
  });

  test('has an image chosen by the architecture of the machine', async () => {
    const foreign = { ...ROOM, architecture: 's390x', config: { Cmd: ['/foreign'] } };
    const both = await unpackContainer(await packTar(await layoutOf(foreign, ROOM)), { image_tag: 'room:1' });
    expect(both.config?.process.args).toEqual(['/server']);
    const { refusal } = await unpackContainer(await packTar(await layoutOf(foreign)));
    expect(refusal).toBe(
      `its image is for "linux/s390x", but this machine runs "linux/${ARCHITECTURE}"; build it with --platform linux/${ARCHITECTURE}.`,
    );
    const windows = await unpackContainer(await packTar(await layoutOf({ ...ROOM, os: 'windows' })));
    expect(windows.refusal).toStartWith(`its image is for "windows/${ARCHITECTURE}", but this machine runs`);
  });

  test('is refused with a changed byte in a layer or the configuration', async () => {
    const entries = await layoutOf(ROOM);
    const changed = entries.flatMap((entry, index) => {
      const content = Buffer.from(entry.content ?? '');
      const text = content.toString('latin1');
      const offset = text.includes('#!/bin/sh') ? text.indexOf('#!/bin/sh') : text.indexOf('"history"');
      if (offset === -1) return [];
      content[offset + 2] = (content[offset + 2] ?? 0) ^ 1;
      return [entries.with(index, { ...entry, content })];
    });
    expect(changed).toHaveLength(2);
    for (const tar of changed) {
      const { refusal } = await unpackContainer(await packTar(tar));
      expect(refusal).toMatch(/^the digest of (".{20,90}"|its layer 1) is wrong\.$/);
    }
  });

  test('is refused without one of its files, unless it has another list of them', async () => {
    const entries = await layoutOf(ROOM);
    const contentOf = (wanted: string) => entries.find(({ name }) => name === wanted)?.content;
    const [index, docker_list] = [contentOf('index.json'), contentOf('manifest.json')];
    const digest: string = index === undefined ? '' : JSON.parse(String(index)).manifests[0].digest;
    const oci_list = ['index.json', `blobs/${digest.replace(':', '/')}`];
    const needless = index === undefined || docker_list === undefined ? [] : ['manifest.json', ...oci_list];
    const files = entries.filter(({ name, type }) => type !== 'directory' && !/VERSION|oci-layout/.test(name));
    const accepted: string[] = [];
    for (const missing of files) {
      const { refusal } = await unpackContainer(await packTar(entries.filter((entry) => entry !== missing)));
      if (refusal === undefined) accepted.push(missing.name);
      else expect(refusal).toMatch(/^(".{20,90}" is missing in it|it has neither manifest.json nor index.json.*)\.$/);
    }
    expect(accepted.toSorted()).toEqual(needless.toSorted());
  });
});

describe('images: layers are applied in order,', () => {
  const apply = async (...layers: TarEntry[][]) => await unpackContainer(await packTar(await dockerLayout({ layers })));
  const dir = (name: string, mode = 0o755): TarEntry => ({ name: `${name}/`, type: 'directory', mode });
  const text = (name: string, content: string): TarEntry => ({ name, content });
  const link = (name: string, linkname: string): TarEntry => ({ name, type: 'symlink', linkname });

  const CASES: [what: string, layers: TarEntry[][], expected: Record<string, string>][] = [
    ['a later file replaces an earlier one', [[text('a', '1')], [text('a', '2')]], { a: '2' }],
    ['a whiteout removes a file', [[text('a', '1'), text('b', '1')], [text('.wh.a', '')]], { b: '1' }],
    [
      'a whiteout removes a folder with everything in it',
      [[dir('d'), text('d/e/f', '1'), text('b', '1')], [text('.wh.d', '')]],
      { b: '1' },
    ],
    ['a whiteout of nothing does nothing', [[text('a', '1')], [text('.wh.b', ''), text('no/.wh.c', '')]], { a: '1' }],
    [
      'a whiteout leaves what its own layer has, before and after it',
      [[text('d/old', '1')], [text('d/new', '2'), text('.wh.d', ''), text('d/more', '3')]],
      { d: 'folder', 'd/new': '2', 'd/more': '3' },
    ],
    [
      'an opaque folder hides what layers below have in it',
      [
        [text('d/old', '1'), text('d/e/old', '1')],
        [text('d/new', '2'), text('d/.wh..wh..opq', ''), text('d/e/x', '3')],
      ],
      { d: 'folder', 'd/new': '2', 'd/e': 'folder', 'd/e/x': '3' },
    ],
    [
      'a later layer brings back what was removed',
      [[text('a', '1')], [text('.wh.a', '')], [text('a', '3')]],
      { a: '3' },
    ],
    [
      'notes of AUFS are left out',
      [[text('.wh..wh.plnk/x', ''), text('.wh..wh.aufs', ''), text('a', '1')]],
      { a: '1' },
    ],
    ['a file replaces a folder', [[text('d/e', '1')], [text('d', '2')]], { d: '2' }],
    ['a folder replaces a file', [[text('d', '1')], [dir('d'), text('d/e', '2')]], { d: 'folder', 'd/e': '2' }],
    [
      'a folder replaces a link, whose target stays as it was',
      [
        [text('real/a', '1'), link('d', 'real')],
        [dir('d'), text('d/a', '2')],
      ],
      { real: 'folder', 'real/a': '1', d: 'folder', 'd/a': '2' },
    ],
    [
      'a link replaces a folder',
      [[text('d/a', '1'), text('real/b', '1')], [link('d', 'real')]],
      { d: 'link to real', real: 'folder', 'real/b': '1' },
    ],
    [
      'a file goes through a link of a lower layer, as in the container',
      [
        [text('usr/lib/a', '1'), link('lib', 'usr/lib'), link('abs', '/usr/lib')],
        [text('lib/b', '2'), text('abs/c', '3')],
      ],
      {
        usr: 'folder',
        'usr/lib': 'folder',
        lib: 'link to usr/lib',
        abs: 'link to /usr/lib',
        'usr/lib/a': '1',
        'usr/lib/b': '2',
        'usr/lib/c': '3',
      },
    ],
    [
      'a whiteout goes through a link of a lower layer',
      [[text('usr/lib/a', '1'), link('lib', 'usr/lib')], [text('lib/.wh.a', '')]],
      { usr: 'folder', 'usr/lib': 'folder', lib: 'link to usr/lib' },
    ],
    [
      'a link above the root leads to the root',
      [[link('up', '../../..'), text('up/a', '1')]],
      { up: 'link to ../../..', a: '1' },
    ],
    [
      'a file twice in one layer has the last content',
      [[text('a', '1'), text('./a', '2'), text('/a', '3')]],
      { a: '3' },
    ],
    [
      'a hard link is a file of its own name, also to a lower layer',
      [[text('a', '1'), { name: 'b', type: 'link', linkname: 'a' }], [{ name: 'c', type: 'link', linkname: './b' }]],
      { a: '1', b: '1', c: '1' },
    ],
    [
      'one of two hard links is replaced alone',
      [[text('a', '1'), { name: 'b', type: 'link', linkname: 'a' }], [text('a', '2')]],
      { a: '2', b: '1' },
    ],
    [
      'devices and pipes are left out',
      [[text('a', '1'), { name: 'null', type: 'character-device' }, { name: 'sda', type: 'block-device' }]],
      { a: '1' },
    ],
    ['an empty layer changes nothing', [[text('a', '1')], [], [text('b', '2')]], { a: '1', b: '2' }],
    ['a name with a backslash, as of systemd', [[text('a\\x2db', '1')]], { 'a\\x2db': '1' }],
  ];
  test.each(CASES)('%s', async (_, layers, expected) => {
    const { refusal, tree, contents, outside } = await apply(...layers);
    expect(refusal).toBeUndefined();
    const seen = Object.entries(tree).map(([path, description]) => [
      path,
      contents[path] ?? description.replace(/^folder .*/, 'folder'),
    ]);
    expect(Object.fromEntries(seen)).toEqual(expected);
    expect(outside).toEqual(UNTOUCHED);
  });

  test('modes are kept, without setuid and setgid', async () => {
    const layer = [
      dir('tmp', 0o1777),
      dir('private', 0o700),
      dir('shared', 0o2775),
      { ...text('su', ''), mode: 0o4755 },
      { ...text('wall', ''), mode: 0o2755 },
      { ...text('secret', ''), mode: 0o640 },
    ];
    expect((await apply(layer)).tree).toEqual({
      tmp: 'folder 1777',
      private: 'folder 700',
      shared: 'folder 775',
      su: 'file 755',
      wall: 'file 755',
      secret: 'file 640',
    });
  });

  test('without root, the service keeps what it needs to read and remove them', async () => {
    const layer = [
      dir('closed', 0o010),
      { ...text('closed/secret', '1'), mode: 0o001 },
      dir('d', 0o555),
      text('d/a', '2'),
    ];
    const { refusal, tree, owners } = await unpackContainer(await packTar(await dockerLayout({ layers: [layer] })), {
      is_root: false,
    });
    expect(refusal).toBeUndefined();
    expect(tree).toEqual({ closed: 'folder 710', 'closed/secret': 'file 601', d: 'folder 755', 'd/a': 'file 644' });
    expect(new Set(Object.values(owners))).toEqual(new Set([`${process.getuid?.()}:${process.getgid?.()}`]));
  });

  test.skipIf(!IS_ROOT)('owners are kept, also large ones, and those of links', async () => {
    const big = { pax: { uid: '3000000', gid: '3000001' } };
    const { owners } = await apply([
      { ...text('a', ''), uid: 1000, gid: 1001 },
      { ...dir('d'), uid: 5, gid: 6 },
      { ...link('l', 'a'), uid: 7, gid: 8 },
      { ...text('b', ''), ...big },
    ]);
    expect(owners).toEqual({ a: '1000:1001', d: '5:6', l: '7:8', b: '3000000:3000001' });
  });
});

describe('images: what runs', () => {
  const PASSWD = 'root:x:0:0::/root:/bin/sh\nplayer:x:1000:1001::/home/player:/bin/sh\n';
  const GROUP = 'root:x:0:\nplayers:x:1001:\naudio:x:29:player,other\nstaff:x:50:\n';
  const layers: TarEntry[][] = [
    [
      { name: 'etc/passwd', content: PASSWD },
      { name: 'etc/group', content: GROUP },
    ],
  ];
  const run = async (config: object, command: string[] = [], more = layers) =>
    await unpackContainer(await packTar(await dockerLayout({ layers: more, config })), { command });

  test('is ENTRYPOINT and CMD, with environment and directory', async () => {
    const { config } = await run({
      Entrypoint: ['/bin/tini', '--'],
      Cmd: ['server', '--fast'],
      Env: ['PATH=/opt', 'MODE=fast', 'HOME=/data'],
      WorkingDir: '/srv',
    });
    expect(config?.process).toEqual({
      args: ['/bin/tini', '--', 'server', '--fast'],
      env: ['PATH=/opt', 'MODE=fast', 'HOME=/data'],
      cwd: '/srv',
      user: { uid: 0, gid: 0, additionalGids: [] },
    });
  });

  const USERS: [user: string, expected: Process['user'], home: string][] = [
    ['', { uid: 0, gid: 0, additionalGids: [] }, '/root'],
    ['player', { uid: 1000, gid: 1001, additionalGids: [29] }, '/home/player'],
    ['1000', { uid: 1000, gid: 1001, additionalGids: [29] }, '/home/player'],
    ['player:staff', { uid: 1000, gid: 50, additionalGids: [] }, '/home/player'],
    ['player:7', { uid: 1000, gid: 7, additionalGids: [] }, '/home/player'],
    ['4711', { uid: 4711, gid: 0, additionalGids: [] }, '/'],
    ['4711:4712', { uid: 4711, gid: 4712, additionalGids: [] }, '/'],
  ];
  test.each(USERS)('as the user "%s"', async (User, expected, home) => {
    const { config } = await run({ Cmd: ['/server'], User });
    expect(config?.process.user).toEqual(expected);
    expect(config?.process.env).toContain(`HOME=${home}`);
  });

  const REFUSED: [what: string, config: object, refusal: string][] = [
    ['a user without an entry', { Cmd: ['/s'], User: 'nobody-here' }, 'its user "nobody-here" is not in /etc/passwd'],
    ['a group without an entry', { Cmd: ['/s'], User: 'player:nothing' }, 'its user "player:nothing" is not in'],
    ['a user with an impossible number', { Cmd: ['/s'], User: '99999999999' }, 'its user "99999999999" is not in'],
    ['no program', {}, 'it names no program: set ENTRYPOINT or CMD in its Dockerfile, or send a command'],
    ['a relative directory', { Cmd: ['/s'], WorkingDir: 'srv' }, 'its working directory "srv" is not absolute'],
    ['a program with the character zero', { Cmd: ['/s\0'] }, 'its program or environment has the character zero'],
  ];
  test.each(REFUSED)('is refused with %s', async (_, config, refusal) => {
    expect((await run(config)).refusal).toStartWith(refusal);
  });

  test('may be replaced by the command of the build', async () => {
    expect((await run({}, ['/bin/game'])).refusal).toBeUndefined();
  });

  test('has users from files that links lead to, inside the container only', async () => {
    const linked = await run(
      { Cmd: ['/s'], User: 'player' },
      [],
      [
        [
          { name: 'etc/passwd', type: 'symlink', linkname: '../nix/passwd' },
          { name: 'nix/passwd', type: 'symlink', linkname: '/nix/store/passwd' },
          { name: 'nix/store/passwd', content: PASSWD },
        ],
      ],
    );
    expect(linked.config?.process.user).toEqual({ uid: 1000, gid: 1001, additionalGids: [] });
    const outside = await run(
      { Cmd: ['/s'], User: 'daemon' },
      [],
      [[{ name: 'etc/passwd', type: 'symlink', linkname: '../../../../../../../../../../etc/passwd' }]],
    );
    expect(outside.refusal).toStartWith('its user "daemon" is not in /etc/passwd');
  });
});

describe('images: a list of images', () => {
  test('may name a layer twice, which older programs write as a link', async () => {
    const entries = await dockerLayout({ layers: [[SERVER], [SERVER]] });
    const [first, second] = entries.filter(({ name }) => name.endsWith('layer.tar'));
    if (!first || !second) throw new Error('the image has two layers');
    const target = `../${first.name}`;
    const linked = entries.map((entry) =>
      entry === second ? { name: second.name, type: 'symlink' as const, linkname: target } : entry,
    );
    expect((await unpackContainer(await packTar(linked))).tree).toEqual({ server: 'file 755' });
  });

  test('of several platforms has the one of the machine, and notes of the build are left out', async () => {
    const entries = await ociLayout([ROOM]);
    const index = entries.find(({ name }) => name === 'index.json');
    const { manifests } = JSON.parse(String(index?.content));
    const note = { digest: `sha256:${'0'.repeat(64)}`, platform: { os: 'unknown', architecture: 'unknown' } };
    const inner = Buffer.from(JSON.stringify({ manifests: [...manifests, note] }));
    const outer = {
      manifests: [{ digest: `sha256:${sha256(inner)}`, annotations: { 'io.containerd.image.name': 'a:1' } }],
    };
    const nested = [
      ...entries.filter((entry) => entry !== index),
      { name: `blobs/sha256/${sha256(inner)}`, content: inner },
      { name: 'index.json', content: JSON.stringify(outer) },
    ];
    expect((await unpackContainer(await packTar(nested))).tree).toMatchObject({ server: 'file 755' });
  });
});
