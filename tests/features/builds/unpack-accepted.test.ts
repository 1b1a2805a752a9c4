import { describe, expect, test } from 'bun:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { packTar, paxRecord, rawEntry, TAR_END, type TarEntry } from '../../support/tar.ts';
import { PACKINGS, UNTOUCHED, unpack } from '../../support/unpacking.ts';

const SCRIPT = '#!/bin/sh\nexec sleep 60\n';
const join = (...entries: Buffer[]) => Buffer.concat([...entries, TAR_END]);

describe.each(Object.entries(PACKINGS))('a %s is unpacked', (_, compress) => {
  test('with its files, its folders and their executable bits', async () => {
    const { refusal, tree, contents, outside } = await unpack(
      compress(
        await packTar([
          { name: './', type: 'directory', mode: 0o700 },
          { name: './server', content: SCRIPT, mode: 0o755 },
          { name: 'maps/', type: 'directory' },
          { name: 'maps/desert', content: 'sand' },
          { name: 'data/of/none', content: '' },
        ]),
      ),
    );
    expect(refusal).toBeUndefined();
    expect(tree).toEqual({
      data: 'folder 755',
      'data/of': 'folder 755',
      'data/of/none': 'file 644',
      maps: 'folder 755',
      'maps/desert': 'file 644',
      server: 'file 755',
    });
    expect(contents).toEqual({ 'data/of/none': '', 'maps/desert': 'sand', server: SCRIPT });
    expect(outside).toEqual(UNTOUCHED);
  });
});

describe('unpacking: only the executable bit of a mode counts', () => {
  const CASES: [mode: number, type: 'file' | 'directory', unpacked: string][] = [
    [0o4755, 'file', 'file 755'],
    [0o2755, 'file', 'file 755'],
    [0o6777, 'file', 'file 755'],
    [0o7644, 'file', 'file 644'],
    [0o666, 'file', 'file 644'],
    [0o100, 'file', 'file 755'],
    [0o001, 'file', 'file 755'],
    [0o400, 'file', 'file 644'],
    [0o1777, 'directory', 'folder 755'],
    [0o2777, 'directory', 'folder 755'],
    [0o500, 'directory', 'folder 755'],
  ];
  for (const [mode, type, unpacked] of CASES) {
    test(`${type} ${mode.toString(8)} becomes ${unpacked}`, async () => {
      const { refusal, tree } = await unpack(await packTar([{ name: 'a', type, mode }]));
      expect(refusal).toBeUndefined();
      expect(tree).toEqual({ a: unpacked });
    });
  }

  test('an invalid mode means a file that is not executable', async () => {
    const { tree } = await unpack(join(rawEntry({ name: 'a', mode: 'zzzzzzz' })));
    expect(tree).toEqual({ a: 'file 644' });
  });
});

describe('unpacking: a valid spelling of a name is accepted:', () => {
  const long = `${'deep/'.repeat(30)}file`;
  const CASES: [what: string, tar: Buffer | Promise<Buffer>, path: string][] = [
    ['with a dot in front', packTar([{ name: './a/b', content: 'x' }]), 'a/b'],
    ['with several dots in front', packTar([{ name: '././a', content: 'x' }]), 'a'],
    ['that only resembles a path outside', packTar([{ name: '..a/...', content: 'x' }]), '..a/...'],
    ['in another script', packTar([{ name: '地图/沙漠', content: 'x' }]), '地图/沙漠'],
    ['with a space, quotes and a star', packTar([{ name: `a b'"*?.txt`, content: 'x' }]), `a b'"*?.txt`],
    ['longer than a header, by PAX', packTar([{ name: `${'f'.repeat(200)}`, content: 'x' }]), 'f'.repeat(200)],
    ['longer than a header, by prefix', join(rawEntry({ prefix: 'a/b', name: 'c', content: 'x' })), 'a/b/c'],
    [
      'longer than a header, by GNU',
      join(
        rawEntry({ name: '././@LongLink', type: 'L', content: `${long}\0`, magic: 'ustar  \0' }),
        rawEntry({ name: long.slice(0, 99), content: 'x', magic: 'ustar  \0' }),
      ),
      long,
    ],
    [
      'with a global PAX header, as git archive writes it',
      join(
        rawEntry({ name: 'pax_global_header', type: 'g', content: paxRecord('comment', 'f'.repeat(40)) }),
        rawEntry({ name: 'a', content: 'x' }),
      ),
      'a',
    ],
    [
      'with a global PAX header of a path, which is left out',
      join(
        rawEntry({ name: 'any', type: 'g', content: paxRecord('path', 'one') }),
        rawEntry({ name: 'any', type: 'x', content: paxRecord('mtime', '1') }),
        rawEntry({ name: 'a', content: 'x' }),
      ),
      'a',
    ],
    ['of a contiguous file', join(rawEntry({ name: 'a', type: '7', content: 'x' })), 'a'],
    ['of an old file with the type zero', join(rawEntry({ name: 'a', type: '\0', content: 'x' })), 'a'],
  ];
  test.each(CASES)('%s', async (_, tar, path) => {
    const { refusal, contents } = await unpack(await tar);
    expect(refusal).toBeUndefined();
    expect(contents).toEqual({ [path]: 'x' });
  });

  test('unpacking: names that differ in case or in Unicode normalization are different files', async () => {
    const names = ['Map', 'map', 'MAP', 'caf\u00e9', 'cafe\u0301'];
    const { refusal, contents } = await unpack(await packTar(names.map((name) => ({ name, content: name }))));
    expect(refusal).toBeUndefined();
    expect(contents).toEqual(Object.fromEntries(names.map((name) => [name, name])));
  });

  test('unpacking: a file whose name ends in a slash is a folder, as in old archives without types', async () => {
    const { refusal, tree } = await unpack(join(rawEntry({ name: 'a/' }), rawEntry({ name: 'a/b', content: 'x' })));
    expect(refusal).toBeUndefined();
    expect(tree).toEqual({ a: 'folder 755', 'a/b': 'file 644' });
  });

  test('unpacking: a folder may occur twice', async () => {
    const folder: TarEntry = { name: 'a/', type: 'directory' };
    const { refusal, tree } = await unpack(await packTar([folder, { name: 'a/b' }, folder]));
    expect(refusal).toBeUndefined();
    expect(tree).toEqual({ a: 'folder 755', 'a/b': 'file 644' });
  });
});

describe('unpacking: an archive is accepted', () => {
  const ENTRIES = [
    { name: 'a', content: 'a'.repeat(700) },
    { name: 'b', content: 'b' },
  ];
  const CONTENTS = Object.fromEntries(ENTRIES.map(({ name, content }) => [name, content]));

  for (const [packing, compress] of Object.entries(PACKINGS)) {
    for (const bytes of [1, 3, 511, 513]) {
      test(`as ${packing} in pieces of ${bytes} bytes`, async () => {
        const archive = compress(await packTar(ENTRIES));
        expect((await unpack(inPieces(archive, bytes))).contents).toEqual(CONTENTS);
      });
    }
  }

  test('in several gzip members or zstd frames, as parallel compressors write it', async () => {
    const tar = await packTar(ENTRIES);
    for (const compress of [gzipSync, zstdCompressSync]) {
      const archive = Buffer.concat([tar.subarray(0, 900), tar.subarray(900)].map((piece) => compress(piece)));
      const { refusal, contents } = await unpack(archive);
      expect(refusal).toBeUndefined();
      expect(contents).toEqual(CONTENTS);
    }
  });

  test('padded with zeros to a whole record, as on tapes', async () => {
    const { refusal, contents } = await unpack(Buffer.concat([await packTar(ENTRIES), Buffer.alloc(8_192)]));
    expect(refusal).toBeUndefined();
    expect(contents).toEqual(CONTENTS);
  });
});

function inPieces(bytes: Uint8Array, length: number): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(pieces) {
      for (let index = 0; index < bytes.length; index += length) pieces.enqueue(bytes.subarray(index, index + length));
      pieces.close();
    },
  });
}
