import { describe, expect, test } from 'bun:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { UNPACK_LIMITS } from '../../../src/features/builds/archives/tar-reader.ts';
import { packTar, paxRecord, rawEntry, TAR_END, type TarEntry } from '../../support/tar.ts';
import { UNTOUCHED, unpack } from '../../support/unpacking.ts';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

test('unpacking: the limits are those that decision 0009 names', () => {
  expect(UNPACK_LIMITS).toEqual({
    entries: 100_000,
    depth: 32,
    name_bytes: 1_024,
    unpacked_bytes: 16 * GIB,
    ratio: 200,
  });
});

describe('a decompression bomb is refused before it fills the disk', () => {
  const zeros = Buffer.alloc(16 * MIB);
  for (const [what, compress] of [
    ['gzip', gzipSync],
    ['zstd', zstdCompressSync],
  ] as const) {
    test(`1 GiB of zeros in ${what}`, async () => {
      const beginning = compress(rawEntry({ name: 'zeros', size: GIB }));
      const member = compress(zeros);
      const bomb = Buffer.concat([beginning, ...Array<Buffer>(GIB / zeros.length).fill(member)]);
      expect(bomb.length).toBeLessThan(2 * MIB);
      // A smaller ratio than that of the service, to save disk space.
      const unpacked = await unpack(bomb, { ratio: 10 });
      expect(unpacked.refusal).toMatch(/^it unpacks to more than \d+ bytes\.$/);
      const allowed = 64 * MIB + bomb.length * 10;
      expect(Number(unpacked.refusal?.match(/\d+/)?.[0])).toBeLessThanOrEqual(allowed);
      expect(unpacked.unpacked_bytes).toBeLessThanOrEqual(allowed);
    }, 300_000);
  }

  test('above the maximum of all bytes', async () => {
    const noise = crypto.getRandomValues(new Uint8Array(50_000));
    const unpacked = await unpack(await packTar([{ name: 'noise', content: noise }]), { unpacked_bytes: 40_000 });
    expect(unpacked.refusal).toBe('it unpacks to more than 40000 bytes.');
    expect(unpacked.unpacked_bytes).toBeLessThanOrEqual(40_000);
  });
});

describe('an archive above another limit is refused', () => {
  const deep = (depth: number) => `${'d/'.repeat(depth - 1)}file`;
  const long = (bytes: number) => `${'f'.repeat(200)}/`.repeat(bytes / 201).concat('f'.repeat(bytes % 201));
  const many = (count: number): TarEntry[] => Array.from({ length: count }, (_, n) => ({ name: `${n}`, content: 'x' }));
  const nested = (count: number) => Array.from({ length: count }, (_, n) => 'd/'.repeat(n + 1));
  const wide = `${'表'.repeat(85)}`;
  const CASES: [what: string, allowed: TarEntry[], refused: TarEntry[], refusal: string][] = [
    [
      'characters in a path',
      [{ name: long(1_024) }],
      [{ name: long(1_025) }],
      `the name "${'f'.repeat(120)}"… is too long.`,
    ],
    [
      'characters in a name',
      [{ name: 'f'.repeat(255) }],
      [{ name: 'f'.repeat(256) }],
      `the name "${'f'.repeat(120)}"… is too long.`,
    ],
    ['bytes in a name', [{ name: wide }], [{ name: `${wide}表` }], `the name "${wide}表"… is too long.`],
    [
      'characters in the name of a folder',
      [{ name: `${'f'.repeat(255)}/`, type: 'directory' }],
      [{ name: `${'f'.repeat(256)}/`, type: 'directory' }],
      `the name "${'f'.repeat(120)}"… is too long.`,
    ],
    ['entries', many(7), many(8), 'it holds more than 7 entries.'],
    [
      'files and the folders that they imply',
      [{ name: 'a/b/c/d/e/f/g' }],
      [{ name: 'a/b/c/d/e/f/g/h' }],
      'it holds more than 7 entries.',
    ],
    [
      'folders that their entries imply',
      [{ name: 'a/b/c/d/e/f/g/', type: 'directory' }],
      [{ name: 'a/b/c/d/e/f/g/h/', type: 'directory' }],
      'it holds more than 7 entries.',
    ],
    [
      'folders with entries of their own',
      nested(7).map((name) => ({ name, type: 'directory' })),
      nested(8).map((name) => ({ name, type: 'directory' })),
      'it holds more than 7 entries.',
    ],
    [
      'entries in one folder',
      many(7).map(() => ({ name: './', type: 'directory' })),
      many(8).map(() => ({ name: './', type: 'directory' })),
      'it holds more than 7 entries.',
    ],
  ];
  for (const [what, allowed, refused, refusal] of CASES) {
    test(`${what}; one less is accepted`, async () => {
      const unpacked = await unpack(await packTar(refused), { entries: 7 });
      expect(unpacked.refusal).toBe(refusal);
      expect(unpacked.outside).toEqual(UNTOUCHED);
      expect((await unpack(await packTar(allowed), { entries: 7 })).refusal).toBeUndefined();
    });
  }

  test('depth; one less is accepted', async () => {
    const unpackDeep = async (depth: number) => await unpack(await packTar([{ name: deep(depth) }]));
    expect((await unpackDeep(33)).refusal).toBe(`"${deep(33)}" is more than 32 folders deep.`);
    expect((await unpackDeep(32)).refusal).toBeUndefined();
  });

  test('bytes in a GNU long name', async () => {
    const name = rawEntry({ name: '././@LongLink', type: 'L', content: `${'f'.repeat(60_000)}\0` });
    const unpacked = await unpack(Buffer.concat([name, rawEntry({ name: 'f' }), TAR_END]));
    expect(unpacked.refusal).toBe(`the name "${'f'.repeat(120)}"… is too long.`);
  });

  test('bytes in a GNU long name of a folder, all slashes but the last', async () => {
    const content = `${'/'.repeat(60_000)}a\0`;
    const name = rawEntry({ name: '././@LongLink', type: 'L', content });
    const unpacked = await unpack(Buffer.concat([name, rawEntry({ name: 'f', type: '5' }), TAR_END]));
    expect(unpacked.refusal).toBe(`the name "${'/'.repeat(120)}"… is too long.`);
  });

  const DAMAGED = 'it is not a tar, or is damaged in or after "a".';
  const pax = (content: string, type = 'x') => rawEntry({ name: 'any', type, content });
  const unpackWith = (...headers: Buffer[]) =>
    unpack(Buffer.concat([rawEntry({ name: 'a' }), ...headers, rawEntry({ name: 'b' }), TAR_END]));

  test('bytes in a header before an entry', async () => {
    for (const type of ['x', 'g', 'L', 'K']) {
      expect((await unpackWith(pax('f'.repeat(65_537), type))).refusal).toBe(DAMAGED);
    }
    expect((await unpackWith(pax(paxRecord('comment', 'f'.repeat(65_000))))).refusal).toBeUndefined();
  });

  test('headers before an entry', async () => {
    const record = pax(paxRecord('mtime', '1'));
    const records = pax(Array.from({ length: 3_000 }, (_, n) => paxRecord(`key-${n}`, 'x')).join(''), 'g');
    expect((await unpackWith(records, ...Array<Buffer>(7).fill(record))).refusal).toBeUndefined();
    expect((await unpackWith(records, ...Array<Buffer>(8).fill(record))).refusal).toBe(DAMAGED);
  });
});
