import { describe, expect, test } from 'bun:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { sha256 } from '../../support/objects/digest.ts';
import {
  dockerLayout,
  ociLayout,
  UNTOUCHED,
  type UnpackedContainer,
  unpackContainer,
} from '../../support/runtimes/images.ts';
import { packTar, paxRecord, rawEntry, TAR_END, type TarEntry } from '../../support/tar.ts';

const MIB = 1024 ** 2;
const TEST_TIMEOUT_MS = 300_000;

type Layer = TarEntry[] | Buffer;
const HONEST: TarEntry = { name: 'server', content: '#!/bin/sh\n', mode: 0o755 };
const raw = (...entries: Buffer[]) => Buffer.concat([...entries, TAR_END]);
const link = (name: string, linkname: string) => rawEntry({ name, type: '2', linkname });
const hard = (name: string, linkname: string) => rawEntry({ name, type: '1', linkname });
const file = (name: string, content = 'x') => rawEntry({ name, content });
const dir = (name: string) => rawEntry({ name: `${name}/`, type: '5', mode: '0000755' });

const unpackLayers = async (layers: Layer[], options: Parameters<typeof unpackContainer>[1] = {}) =>
  await unpackContainer(await packTar(await dockerLayout({ layers: [[HONEST], ...layers] })), options);

/** The same entries as a bundle, in whose tar they are below `rootfs/`. */
async function unpackAsBundle(layers: TarEntry[][]): Promise<UnpackedContainer> {
  const below = layers.flat().map((entry) => ({
    ...entry,
    name: `rootfs/${entry.name}`,
    ...(entry.type === 'link' ? { linkname: `rootfs/${entry.linkname}` } : {}),
  }));
  const config = JSON.stringify({ process: { args: ['/server'], cwd: '/', user: { uid: 1, gid: 2 } } });
  return await unpackContainer(await packTar([{ name: 'config.json', content: config }, ...below]), {
    kind: 'oci_bundle',
  });
}

describe('hostile images: refused, and nothing is written outside:', () => {
  const notPlain = (name: string) => `in its layer 2, ${JSON.stringify(name)} is not a plain path inside the image.`;
  const noFile = (name: string, to: string) =>
    `in its layer 2, ${JSON.stringify(name)} is a hard link to ${JSON.stringify(to)}, which is not a file in the image.`;
  const badLink = (to: string) =>
    `in its layer 2, "a" is a link whose target is empty or not UTF-8: ${JSON.stringify(to)}.`;
  const CASES: [what: string, layer: Buffer, refusal: string][] = [
    ...['../note', '../../note', 'a/../../note', '..', '/../note', './../note', 'a/..', 'line\nbreak', '\x7f'].map(
      (name): [string, Buffer, string] => [`a file named ${JSON.stringify(name)}`, raw(file(name)), notPlain(name)],
    ),
    ['a folder outside', raw(dir('../outside')), notPlain('../outside/')],
    ['a link outside', raw(link('../link', 'a')), notPlain('../link')],
    [
      'a name with the character zero',
      raw(rawEntry({ name: 'any', type: 'x', content: paxRecord('path', 'a\0b') }), file('a')),
      notPlain('a\0b'),
    ],
    ['a hard link to a file of this machine', raw(hard('l', '/etc/passwd')), noFile('l', '/etc/passwd')],
    ['a hard link upwards', raw(hard('l', '../../../note')), notPlain('../../../note')],
    ['a hard link to a link outside', raw(link('s', '/etc/passwd'), hard('l', 's')), noFile('l', 's')],
    [
      'a hard link through a link outside',
      raw(link('up', '../../../../..'), hard('l', 'up/etc/passwd')),
      noFile('l', 'up/etc/passwd'),
    ],
    ['a hard link to a folder', raw(dir('d'), hard('l', 'd')), noFile('l', 'd')],
    ['a hard link to the root', raw(hard('l', '.')), noFile('l', '.')],
    [
      'a hard link into the folder that it replaces',
      raw(file('d/a'), hard('d', 'd/a')),
      'in its layer 2, "d" is a hard link to a file in the folder that it replaces.',
    ],
    [
      'links in a circle',
      raw(link('a', 'b'), link('b', 'a'), file('a/x')),
      'in its layer 2, "a" goes through more than 40 links.',
    ],
    ['a link to itself', raw(link('a', 'a'), file('a/x')), 'in its layer 2, "a" goes through more than 40 links.'],
    ['a link to nothing', raw(link('a', '')), badLink('')],
    ['a whiteout of ..', raw(file('d/.wh...')), 'in its layer 2, "d/.wh..." is a whiteout that names no file.'],
    ['a whiteout of .', raw(file('d/.wh..')), 'in its layer 2, "d/.wh.." is a whiteout that names no file.'],
    ['a whiteout without a name', raw(file('d/.wh.')), 'in its layer 2, "d/.wh." is a whiteout that names no file.'],
    ['a whiteout outside', raw(file('../.wh.note')), notPlain('../.wh.note')],
    [
      'a file below a file',
      raw(file('server/a')),
      'in its layer 2, "server/a" needs a folder where the image has a file.',
    ],
    [
      'the root as a file',
      raw(rawEntry({ name: './', type: '2', linkname: '/' })),
      'in its layer 2, the root of its files is not a folder.',
    ],
    [
      'an unknown type',
      raw(rawEntry({ name: 'a', type: '~' })),
      'in its layer 2, "a" is neither a file, a folder nor a link.',
    ],
    [
      'a sparse file',
      raw(rawEntry({ name: 'any', type: 'x', content: paxRecord('GNU.sparse.major', '1') }), file('a')),
      'in its layer 2, "a" is a sparse file; pack it whole (tar without --sparse).',
    ],
    [
      'an owner whose number is out of range',
      raw(rawEntry({ name: 'any', type: 'x', content: paxRecord('uid', '99999999999') }), file('a')),
      'in its layer 2, "a" has an owner whose number is out of range.',
    ],
    [
      'a layer that was cut',
      file('a'),
      'in its layer 2, its end is missing, so packing or copying it was interrupted in or after "a".',
    ],
    ['a layer that is no tar', Buffer.from('#!/bin/sh\n'), 'in its layer 2, it is not a tar, or is damaged.'],
  ];
  for (const [what, layer, refusal] of CASES) {
    // Without root nothing has an owner.
    test.skipIf(what.includes('owner') && process.getuid?.() !== 0)(what, async () => {
      const unpacked = await unpackLayers([layer]);
      expect(unpacked.refusal).toBe(refusal);
      expect(unpacked.outside).toEqual(UNTOUCHED);
    });
  }
});

describe('hostile images: a link leads only inside the container,', () => {
  const UP = '../../../../../../../../..';
  const CASES: [what: string, layers: Layer[], expected: Record<string, string>][] = [
    [
      'an absolute one',
      [raw(link('l', '/etc'), file('l/evil', '1'))],
      { etc: 'folder', 'etc/evil': '1', l: 'link to /etc' },
    ],
    [
      'one that leads far up',
      [raw(link('l', `${UP}/tmp`), file('l/evil', '1'))],
      { l: `link to ${UP}/tmp`, tmp: 'folder', 'tmp/evil': '1' },
    ],
    [
      'a chain of them',
      [raw(link('a', UP), link('b', 'a/a/a'), link('c', `b/${UP}/b`), file('c/evil', '1'))],
      { a: `link to ${UP}`, b: 'link to a/a/a', c: `link to b/${UP}/b`, evil: '1' },
    ],
    [
      'one in the place of a folder that an earlier layer wrote',
      [raw(file('d/a', '1')), raw(link('d', '/root')), raw(file('d/evil', '2'))],
      { d: 'link to /root', root: 'folder', 'root/evil': '2' },
    ],
    [
      'one in the place of a folder that was written just before',
      [raw(dir('d'), file('d/a', '1'), link('d', '../../inside'), file('d/evil', '2'))],
      { d: 'link to ../../inside', inside: 'folder', 'inside/evil': '2' },
    ],
    [
      'and a file in the place of a link replaces the link',
      [raw(link('l', '/etc/passwd'), file('l', 'mine'))],
      { l: 'mine' },
    ],
    [
      'and a folder in the place of a link replaces the link, with its mode',
      [raw(link('l', `${UP}/tmp`), dir('l'), file('l/a', '1'))],
      { l: 'folder', 'l/a': '1' },
    ],
    [
      'and a whiteout of a link removes the link alone',
      [raw(file('d/a', '1'), link('l', 'd')), raw(file('.wh.l'))],
      { d: 'folder', 'd/a': '1' },
    ],
    [
      'and an opaque folder behind a link is inside too',
      [raw(file('d/a', '1'), link('l', '/d')), raw(file('l/.wh..wh..opq'))],
      { d: 'folder', l: 'link to /d' },
    ],
    [
      'and a hard link through a link finds a file inside',
      [raw(file('d/a', '1'), link('l', `${UP}/d`), hard('h', 'l/a'))],
      { d: 'folder', 'd/a': '1', l: `link to ${UP}/d`, h: '1' },
    ],
  ];
  test.each(CASES)('%s', async (_, layers, expected) => {
    const { refusal, tree, contents, outside } = await unpackLayers(layers);
    expect(refusal).toBeUndefined();
    const seen = Object.entries(tree).map(([path, description]) => [
      path,
      contents[path] ?? description.replace(/^folder .*/, 'folder'),
    ]);
    expect(Object.fromEntries(seen)).toEqual({ server: '#!/bin/sh\n', ...expected });
    expect(outside).toEqual(UNTOUCHED);
  });
});

describe('hostile images: limits', () => {
  const many = (count: number): TarEntry[] => Array.from({ length: count }, (_, n) => ({ name: `${n}`, content: '' }));

  test('of entries count all layers together, and the files of the tar', async () => {
    // Four entries of the tar for each of three layers, two for its lists, and one file in the first layer.
    const used = 3 * 3 + 2 + 1;
    const layers = [many(20), many(20)];
    expect((await unpackLayers(layers, { limits: { entries: used + 40 } })).refusal).toBeUndefined();
    expect((await unpackLayers(layers, { limits: { entries: used + 39 } })).refusal).toBe(
      `in its layer 3, it holds more than ${used + 39} entries.`,
    );
  });

  test('of entries hold for 100,001 whiteouts of one name', async () => {
    const whiteout = rawEntry({ name: '.wh.server' });
    const { refusal } = await unpackLayers([Buffer.concat([...Array<Buffer>(100_001).fill(whiteout), TAR_END])]);
    expect(refusal).toBe('in its layer 2, it holds more than 100000 entries.');
  }, 300_000);

  test('of entries count folders that a link makes, and links that are followed', async () => {
    const deep = Array.from({ length: 30 }, (_, n) => `d${n}`).join('/');
    const made = await unpackLayers([raw(link('l', deep), file('l/x'))], { limits: { entries: 30 } });
    expect(made.refusal).toBe('in its layer 2, it holds more than 30 entries.');
    const followed = raw(link('a', '.'), ...Array.from({ length: 20 }, (_, n) => file(`a/a/a/a/a/${n}`)));
    const { refusal } = await unpackLayers([followed], { limits: { entries: 60 } });
    expect(refusal).toBe('in its layer 2, it holds more than 60 entries.');
  });

  test('of entries count the names of links that are followed, each 32 as one', async () => {
    const unpackThrough = (linkname: string) => {
      const folder: TarEntry = { name: 'd/', type: 'directory' };
      const layer: TarEntry[] = [folder, { name: 'l', type: 'symlink', linkname }, { name: 'l/x', content: 'x' }];
      return unpackLayers([layer], { limits: { entries: 24 } });
    };
    expect((await unpackThrough(`${'d/../'.repeat(100)}d`)).tree).toMatchObject({ 'd/x': 'file 644' });
    expect((await unpackThrough(`${'d/../'.repeat(200)}d`)).refusal).toBe(
      'in its layer 2, it holds more than 24 entries.',
    );
  });

  test('of links hold for the time that many slashes in them take', async () => {
    const links = Array.from({ length: 40 }, (_, n): TarEntry => {
      const next = n < 39 ? `l${n + 1}` : 'd';
      return { name: `l${n}`, type: 'symlink', linkname: next + '/'.repeat(1_024 - next.length) };
    });
    const files = Array.from({ length: 200 }, (_, n) => ({ name: `l0/${n}`, content: 'x' }));
    const { refusal, tree } = await unpackLayers([[{ name: 'd/', type: 'directory' }, ...links, ...files]]);
    expect(refusal).toBeUndefined();
    expect(Object.keys(tree).filter((path) => path.startsWith('d/'))).toHaveLength(files.length);
  });

  test('of names hold for the tar itself, and for targets of its links', async () => {
    const image = await dockerLayout({ layers: [[HONEST]] });
    const unpackWith = async (entry: TarEntry) => (await unpackContainer(await packTar([...image, entry]))).refusal;
    const long = (bytes: number) => 'f/'.repeat(bytes).slice(0, bytes);
    const refusal = `the name "${long(120)}"… is too long.`;
    expect(await unpackWith({ name: long(1_024), content: 'x' })).toBeUndefined();
    expect(await unpackWith({ name: long(1_025), content: 'x' })).toBe(refusal);
    expect(await unpackWith({ name: 'l', type: 'symlink', linkname: long(1_024) })).toBeUndefined();
    expect(await unpackWith({ name: 'l', type: 'symlink', linkname: long(1_025) })).toBe(refusal);
  });

  test('of depth and names hold behind links too', async () => {
    const deep = Array.from({ length: 20 }, () => 'd').join('/');
    const unpacked = await unpackLayers([raw(link('l', deep), link(`${deep}/m`, deep), file('l/m/x'))]);
    expect(unpacked.refusal).toBe('in its layer 2, "l/m/x" is more than 32 folders deep.');
    const name = 'n'.repeat(256);
    const long = await unpackLayers([[{ name, content: 'x' }]]);
    expect(long.refusal).toBe(`in its layer 2, the name "${'n'.repeat(120)}"… is too long.`);
    const target = await unpackLayers([
      [
        { name: 'l', type: 'symlink', linkname: name },
        { name: 'l/x', content: 'x' },
      ],
    ]);
    expect(target.refusal).toBe('in its layer 2, the name "l/x"… is too long.');
  });

  test(
    'of bytes hold for a bomb in a layer, and for all layers together',
    async () => {
      const zeros: TarEntry[] = [{ name: 'zeros', content: Buffer.alloc(40 * MIB) }];
      const unpackLarge = async (layers: TarEntry[][]) =>
        await unpackContainer(await packTar(await dockerLayout({ layers, compress: gzipSync })), {
          limits: { ratio: 1 },
        });
      expect((await unpackLarge([zeros])).refusal).toBeUndefined();
      const two = await unpackLarge([zeros, zeros]);
      expect(two.refusal).toMatch(/^in its layer 2, it unpacks to more than \d+ bytes\.$/);
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'of bytes hold for a bomb around the layers',
    async () => {
      const tar = await packTar(await dockerLayout({ layers: [[{ name: 'zeros', content: Buffer.alloc(80 * MIB) }]] }));
      const { refusal } = await unpackContainer(gzipSync(tar), { limits: { ratio: 1 } });
      expect(refusal).toMatch(/^it unpacks to more than \d+ bytes\.$/);
    },
    TEST_TIMEOUT_MS,
  );

  test('of lists: layers, images, and lists in lists', async () => {
    const layers = await unpackContainer(await packTar(await dockerLayout({ layers: Array(501).fill([]) })));
    expect(layers.refusal).toMatch(/^"manifest.json" has an unexpected content at "\/0\/Layers"/);
    const inner = JSON.stringify({ manifests: [] });
    const nest = async (depth: number, lists_each: number) => {
      const entries: TarEntry[] = [];
      let list = inner;
      for (let made = 0; made < depth; made += 1) {
        const name = sha256(list);
        entries.push({ name: `blobs/sha256/${name}`, content: list });
        list = JSON.stringify({ manifests: Array(lists_each).fill({ digest: `sha256:${name}` }) });
      }
      return await unpackContainer(await packTar([...entries, { name: 'index.json', content: list }]));
    };
    expect((await nest(4, 100)).refusal).toBe('it has more than 100 images and lists of images.');
    expect((await nest(5, 1)).refusal).toBe('its lists of images are nested more than 4 deep.');
  });

  test('of names of images, which may consist of colons', async () => {
    const tag = `${':'.repeat(500_000)}/`;
    const options = { image_tag: 'room' };
    const docker = await packTar(await dockerLayout({ layers: [[HONEST]], tags: [tag] }));
    expect((await unpackContainer(docker, options)).refusal).toMatch(
      /^"manifest.json" has an unexpected content at "\/0\/RepoTags/,
    );
    const oci = await packTar(await ociLayout([{ layers: [[HONEST]], tags: [tag] }]));
    expect((await unpackContainer(oci, options)).refusal).toMatch(/^"index.json" has an unexpected content at "/);
  });

  test('of JSON', async () => {
    const manifest = (content: string) => packTar([{ name: 'manifest.json', content }]);
    const large = await unpackContainer(await manifest(`[${' '.repeat(MIB)}]`));
    expect(large.refusal).toBe('"manifest.json" is too large.');
    for (const content of ['', '{', '['.repeat(100_000)]) {
      expect((await unpackContainer(await manifest(content))).refusal).toBe('"manifest.json" is not JSON.');
    }
    for (const content of ['{}', '[{}]', '[{"Config": 1}]', 'null', '[{"Config":"a","Layers":[1]}]']) {
      expect((await unpackContainer(await manifest(content))).refusal).toMatch(
        /^"manifest.json" has an unexpected content at "[^"]*": .*\.$/,
      );
    }
    expect((await unpackContainer(await manifest('[]'))).refusal).toBe(
      'it has no image; save one with "docker save NAME".',
    );
  });
});

describe('hostile images: names in the tar are only names:', () => {
  test('a file outside, a link to a file of this machine, and a link in a circle', async () => {
    const entries: TarEntry[] = [
      { name: '../../note', content: 'overwritten' },
      { name: '/etc/hostname-of-a-test', content: 'x' },
      { name: 'config.json', type: 'symlink', linkname: '../../../../../../etc/passwd' },
      { name: 'circle', type: 'symlink', linkname: 'circle' },
      { name: 'manifest.json', content: '[{"Config":"config.json","Layers":[]}]' },
    ];
    const unpacked = await unpackContainer(await packTar(entries));
    expect(unpacked.refusal).toBe('"config.json" is missing in it.');
    expect(unpacked.outside).toEqual(UNTOUCHED);
    const circle = entries.with(-1, { name: 'manifest.json', content: '[{"Config":"circle","Layers":[]}]' });
    expect((await unpackContainer(await packTar(circle))).refusal).toBe('"circle" is missing in it.');
  });

  test('a name that occurs twice has the last content', async () => {
    const entries = await ociLayout([{ layers: [[HONEST]] }], { with_manifest: true });
    const twice = [...entries, { name: 'manifest.json', content: '[]' }];
    expect((await unpackContainer(await packTar(twice))).refusal).toBe(
      'it has no image; save one with "docker save NAME".',
    );
  });

  test('not a tar, an empty one, and an archive', async () => {
    expect((await unpackContainer(TAR_END)).refusal).toBe('it is empty, or not a tar.');
    expect((await unpackContainer(Buffer.from('#!/bin/sh\n'))).refusal).toBe('it is not a tar, or is damaged.');
    expect((await unpackContainer(await packTar([HONEST]))).refusal).toBe(
      'it has neither manifest.json nor index.json, so it was not made by "docker save".',
    );
  });
});

const name = fc.constantFrom(
  'a',
  'b',
  'a/b',
  'a/b/c',
  'a/',
  'b/',
  'b/a',
  './',
  '.',
  '..',
  '../note',
  '/note',
  'b//c',
  'a/./b',
  '.wh.a',
  '.wh.b',
  'a/.wh.b',
  '.wh..wh..opq',
  'a/.wh..wh..opq',
  '.wh...',
  'a/.wh...',
);
const target = fc.constantFrom('a', 'b', '.', '..', '/', '../..', '../../..', '/a', '../../note', 'a/b', '/etc', 'b/a');
const entry = fc.record({
  name,
  type: fc.constantFrom('0', '0', '5', '2', '2', '1', '3', '6'),
  linkname: target,
  content: fc.constantFrom('', 'content'),
});

test(
  'hostile images: random entries in random layers stay inside, as an image and as a bundle',
  async () => {
    let accepted = 0;
    const layers = fc.array(fc.array(entry, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(layers, async (random) => {
        const types = {
          '0': 'file',
          '1': 'link',
          '2': 'symlink',
          '3': 'character-device',
          '5': 'directory',
          '6': 'fifo',
        };
        const tars = random.map((layer) =>
          Buffer.concat([
            ...layer.map(({ type, content, ...rest }) =>
              rawEntry({ type, ...rest, content: type === '0' ? content : '' }),
            ),
            TAR_END,
          ]),
        );
        const image = await unpackLayers(tars);
        const entries = random.map((layer) =>
          layer.map(({ type, ...rest }) => ({ ...rest, type: types[type as keyof typeof types] }) as TarEntry),
        );
        const bundle = await unpackAsBundle(entries);
        for (const unpacked of [image, bundle]) {
          expect(unpacked.outside).toEqual(UNTOUCHED);
          for (const description of Object.values(unpacked.tree)) {
            expect(description).toMatch(/^(file|folder) \d+$|^link to /);
          }
        }
        if (image.refusal === undefined) accepted += 1;
      }),
      { numRuns: 150 },
    );
    expect(accepted).toBeGreaterThan(5);
  },
  TEST_TIMEOUT_MS,
);

describe('bundles', () => {
  const config = (process: object) => ({ name: 'config.json', content: JSON.stringify({ process, hooks: { a: 1 } }) });
  const unpackBundle = async (...entries: TarEntry[]) =>
    await unpackContainer(await packTar(entries), { kind: 'oci_bundle' });
  const ROOTFS: TarEntry[] = [
    { name: './rootfs/', type: 'directory', mode: 0o755 },
    { name: './rootfs/server', content: 'x', mode: 0o755 },
    { name: './rootfs/link', type: 'symlink', linkname: '/server' },
    { name: './rootfs/again', type: 'link', linkname: './rootfs/server' },
    { name: './rootfs/.wh.server', content: 'a file of this name' },
    { name: './umoci.json', content: '{}' },
  ];

  test('are unpacked, and of their configuration only what they run is kept', async () => {
    const process = {
      args: ['/server'],
      env: ['A=1', 'PATH=/'],
      cwd: '/srv',
      user: { uid: 7, gid: 8 },
      capabilities: {},
    };
    const { refusal, tree, config: kept, others, outside } = await unpackBundle(config(process), ...ROOTFS);
    expect(refusal).toBeUndefined();
    expect(tree).toEqual({
      server: 'file 755',
      link: 'link to /server',
      again: 'file 755',
      '.wh.server': 'file 644',
    });
    expect(kept).toEqual({
      ociVersion: '1.0.2',
      process: { args: ['/server'], env: ['A=1', 'PATH=/'], cwd: '/srv', user: { uid: 7, gid: 8, additionalGids: [] } },
      root: { path: 'rootfs' },
    });
    expect([others, outside]).toEqual([[], UNTOUCHED]);
  });

  test('get nothing of the machine by their configuration', async () => {
    const content = JSON.stringify({
      process: {
        args: ['/server'],
        noNewPrivileges: false,
        capabilities: { bounding: ['CAP_SYS_ADMIN'] },
        rlimits: [],
      },
      root: { path: '/', readonly: false },
      mounts: [{ destination: '/host', type: 'bind', source: '/', options: ['rbind', 'rw'] }],
      hooks: { prestart: [{ path: '/bin/sh', args: ['sh', '-c', 'id > /note'] }] },
      linux: { namespaces: [], devices: [{ path: '/dev/sda', type: 'b', major: 8, minor: 0 }], seccomp: {} },
      annotations: { 'run.oci.keep_original_groups': '1' },
    });
    const { refusal, config: kept, outside } = await unpackBundle({ name: 'config.json', content }, ...ROOTFS);
    expect(refusal).toBeUndefined();
    expect(Object.keys(kept ?? {}).sort()).toEqual(['ociVersion', 'process', 'root']);
    expect(Object.keys(kept?.process ?? {}).sort()).toEqual(['args', 'cwd', 'env', 'user']);
    expect(kept?.root).toEqual({ path: 'rootfs' });
    expect(outside).toEqual(UNTOUCHED);
  });

  const CASES: [what: string, entries: TarEntry[], refusal: string | RegExp][] = [
    ['without a configuration', ROOTFS, /^it needs both config.json and rootfs\/ at its top: pack it from inside /],
    ['without files', [config({ args: ['/s'] })], /^it needs both config.json and rootfs\/ at its top: /],
    ['without a program', [config({}), ...ROOTFS], /^it names no program: /],
    [
      'with a user that is text',
      [config({ user: { uid: 'root' } }), ...ROOTFS],
      /^"config.json" has an unexpected content/,
    ],
    [
      'with a negative user',
      [config({ args: ['a'], user: { uid: -1 } }), ...ROOTFS],
      /^"config.json" has an unexpected/,
    ],
    [
      'with a configuration that is a link',
      [{ name: 'config.json', type: 'symlink', linkname: '/etc/passwd' }, ...ROOTFS],
      /not JSON/,
    ],
    [
      'with files that are a link',
      [config({}), { name: 'rootfs', type: 'symlink', linkname: '/' }],
      'the root of its files is not a folder.',
    ],
    [
      'with files outside',
      [config({}), { name: 'rootfs/../../note', content: 'x' }],
      '"rootfs/../../note" is not a plain path inside the image.',
    ],
    [
      'with a hard link to its configuration',
      [config({}), { name: 'rootfs/l', type: 'link', linkname: 'config.json' }],
      '"rootfs/l" is a hard link to a file outside of rootfs/.',
    ],
  ];
  test.each(CASES)('are refused %s', async (_, entries, refusal) => {
    const unpacked = await unpackBundle(...entries);
    if (typeof refusal === 'string') expect(unpacked.refusal).toBe(refusal);
    else expect(unpacked.refusal).toMatch(refusal);
    expect(unpacked.outside).toEqual(UNTOUCHED);
  });
});
