import { describe, expect, test } from 'bun:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { packTar, paxRecord, rawEntry, TAR_END } from '../../support/tar.ts';
import { PACKINGS, UNTOUCHED, unpack } from '../../support/unpacking.ts';

const BLOCK = 512;
const TAR = await packTar([
  { name: 'server', content: '#!/bin/sh\n', mode: 0o755 },
  { name: 'maps/desert', content: 'sand'.repeat(1_000) },
  { name: 'maps/sea', content: 'salt'.repeat(1_000) },
]);
/** Random bytes do not compress, so a truncated stream contains much of it. */
const NOISE = await packTar([{ name: 'noise', content: crypto.getRandomValues(new Uint8Array(60_000)) }]);
const SECOND = 2 * BLOCK;
const THIRD = SECOND + BLOCK + 8 * BLOCK;
const END = THIRD + BLOCK + 8 * BLOCK;

const DAMAGED = 'it is not a tar, or is damaged';
const CUT = 'its end is missing, so packing or copying it was interrupted';
const NOTHING = 'it is empty, or not a tar.';

test('unpacking: the layout of the archive in this suite is as its cases assume', () => {
  expect(TAR.subarray(SECOND).toString('utf8', 0, 11)).toBe('maps/desert');
  expect(TAR.subarray(THIRD).toString('utf8', 0, 8)).toBe('maps/sea');
  expect(TAR.length).toBe(END + 2 * BLOCK);
});

describe.each(Object.entries(PACKINGS))(
  'a damaged %s is refused with the entry where the damage shows',
  (_, compress) => {
    const CASES: [what: string, tar: Uint8Array, refusal: string][] = [
      ['empty', Buffer.alloc(0), NOTHING],
      ['only the end of an archive', TAR_END, NOTHING],
      ['a script instead of a tar', Buffer.from('#!/bin/sh\nexec ./server\n'), `${DAMAGED}.`],
      ['random bytes instead of a tar', Buffer.from(crypto.getRandomValues(new Uint8Array(4_096))), `${DAMAGED}.`],
      ['cut in the first header', TAR.subarray(0, 300), `${DAMAGED}.`],
      ['cut in a file', TAR.subarray(0, SECOND + 700), `${DAMAGED} in or after "maps/desert".`],
      ["cut in a file's padding", TAR.subarray(0, THIRD - 1), `${DAMAGED} in or after "maps/desert".`],
      ['cut in a later header', TAR.subarray(0, THIRD + 100), `${DAMAGED} in or after "maps/desert".`],
      ['cut between two files', TAR.subarray(0, THIRD), `${CUT} in or after "maps/desert".`],
      ['without its end', TAR.subarray(0, END), `${CUT} in or after "maps/sea".`],
      ['cut in its end', TAR.subarray(0, END + 100), `${DAMAGED} in or after "maps/sea".`],
      ['changed in a header', changed(TAR, SECOND), `${DAMAGED} in or after "server".`],
      ['followed by other bytes', Buffer.concat([TAR, Buffer.alloc(BLOCK, 'r')]), `${DAMAGED} in or after "maps/sea".`],
      ['followed by less than a block', Buffer.concat([TAR, Buffer.from('r')]), `${DAMAGED} in or after "maps/sea".`],
      ['with a wrong checksum', joined(rawEntry({ name: 'b', checksum_error: 1 })), `${DAMAGED} in or after "a".`],
      ['of an unknown format', joined(rawEntry({ name: 'b', magic: 'other' })), `${DAMAGED} in or after "a".`],
      [
        'with an entry larger than the archive',
        joined(rawEntry({ name: 'b', size: 5_000 })),
        `${DAMAGED} in or after "b".`,
      ],
      ['with the maximum size', joined(rawEntry({ name: 'b', size: 0o77777777777 })), `${DAMAGED} in or after "b".`],
      ['with a negative size', joined(pax('size', '-1'), rawEntry({ name: 'b' })), `${DAMAGED} in or after "a".`],
      [
        'with a size that is no number',
        joined(pax('size', 'x'), rawEntry({ name: 'b' })),
        `${DAMAGED} in or after "a".`,
      ],
      [
        'with a size above the maximum',
        joined(pax('size', '9'.repeat(400)), rawEntry({ name: 'b' })),
        `${DAMAGED} in or after "b".`,
      ],
      [
        'with an oversized header',
        joined(rawEntry({ name: 'b', type: 'x', size: 5_000_000 })),
        `${DAMAGED} in or after "a".`,
      ],
    ];
    for (const [what, tar, refusal] of CASES) {
      test(what, async () => {
        const unpacked = await unpack(compress(tar));
        expect(unpacked.refusal).toBe(refusal);
        expect(unpacked.outside).toEqual(UNTOUCHED);
      });
    }
  },
);

describe('unpacking: damaged compression is refused:', () => {
  const gzip = gzipSync(TAR);
  const zstd = zstdCompressSync(TAR);
  const CASES: [what: string, archive: Uint8Array][] = [
    ['gzip without its checksum', gzip.subarray(0, -8)],
    ['gzip cut in the middle', gzip.subarray(0, gzip.length / 2)],
    ['only the first bytes of gzip', gzip.subarray(0, 4)],
    ['gzip with a wrong checksum', changed(gzip, gzip.length - 6)],
    ['gzip with a wrong length', changed(gzip, gzip.length - 2)],
    ['gzip with a changed byte', changed(gzip, 40)],
    ['gzip followed by other bytes', Buffer.concat([gzip, Buffer.from('rubbish')])],
    ['gzip followed by half of another', Buffer.concat([gzip, gzip.subarray(0, 30)])],
    ['zstd without its last byte', zstd.subarray(0, -1)],
    ['zstd cut in the middle', zstd.subarray(0, zstd.length / 2)],
    ['only the first bytes of zstd', zstd.subarray(0, 4)],
    ['zstd cut after much of the content', zstdCompressSync(NOISE).subarray(0, 50_000)],
    ['gzip within gzip', gzipSync(gzip)],
    ['zstd within gzip', gzipSync(zstd)],
    ['another compression (xz)', Buffer.concat([Buffer.from('fd377a585a00', 'hex'), gzip])],
    ['another archive (zip)', Buffer.concat([Buffer.from('PK\x03\x04'), gzip])],
  ];
  test.each(CASES)('%s', async (_, archive) => {
    const unpacked = await unpack(archive);
    expect(unpacked.refusal).toMatch(
      /^it is (not a tar, or is damaged( in or after "[a-z/]+")?|empty, or not a tar)\.$/,
    );
    expect(unpacked.outside).toEqual(UNTOUCHED);
  });
});

function changed(bytes: Uint8Array, place: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[place] = (copy[place] ?? 0) ^ 0x10;
  return copy;
}

function joined(...entries: Buffer[]): Buffer {
  return Buffer.concat([rawEntry({ name: 'a' }), ...entries, TAR_END]);
}

function pax(key: string, value: string): Buffer {
  return rawEntry({ name: 'any', type: 'x', content: paxRecord(key, value) });
}
