import { afterAll, describe, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { $ } from 'bun';
import { decompressLz4 } from '../../../src/features/builds/archives/lz4.ts';

const MIB = 1024 ** 2;
const directory = await mkdtemp(join(tmpdir(), 'muster-lz4-'));
afterAll(() => rm(directory, { recursive: true, force: true }));
const DAMAGED = 'the lz4 stream is damaged';

/** Compresses with the program of the format's authors. */
async function compress(content: Uint8Array, ...options: string[]): Promise<Buffer> {
  const file = join(directory, crypto.randomUUID());
  await Bun.write(file, content);
  return Buffer.from(await $`lz4 --quiet -c ${options} ${file}`.arrayBuffer());
}

/** Decompresses bytes that arrive in chunks of a length. */
async function decompress(bytes: Uint8Array, chunk_bytes = 10_007): Promise<Buffer> {
  async function* chunks() {
    for (let offset = 0; offset < bytes.length; offset += chunk_bytes)
      yield bytes.subarray(offset, offset + chunk_bytes);
  }
  return Buffer.concat(await Array.fromAsync(decompressLz4(chunks())));
}

const refusalOf = (bytes: Uint8Array) => decompress(bytes).then(String, (error: Error) => error.message);

/** A frame of one block, whose first sequence is given in bytes. Its block hash and content hash are left out. */
function frameOf(...block: number[]): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(block.length);
  return Buffer.concat([Buffer.from('04224d18604082', 'hex'), length, Buffer.from(block), Buffer.alloc(4)]);
}

/** A frame without blocks, whose blocks might have 4 MiB. */
function emptyFrame(): Buffer {
  const header = Buffer.from('6070', 'hex');
  const hash = (Bun.hash.xxHash32(header) >> 8) & 0xff;
  return Buffer.concat([Buffer.from('04224d18', 'hex'), header, Buffer.from([hash]), Buffer.alloc(4)]);
}

describe('lz4: tiny blocks', () => {
  const block = Buffer.from('0100008061', 'hex');
  const tiny = (blocks: number) => Buffer.concat([emptyFrame().subarray(0, 7), Buffer.alloc(5 * blocks, block)]);

  test('lz4: a stream of them is refused, whatever it is', async () => {
    const refusal = 'the lz4 stream has blocks of less than 4096 bytes on average';
    expect(await refusalOf(tiny(100_100))).toBe(refusal);
    const frames = Buffer.concat(Array<Buffer>(101).fill(Buffer.concat([tiny(1_000), Buffer.alloc(4)])));
    expect(await refusalOf(frames)).toBe(refusal);
  });

  test('lz4: 100,000 of them are read', async () => {
    expect(String(await decompress(Buffer.concat([tiny(100_000), Buffer.alloc(4)])))).toBe('a'.repeat(100_000));
  });
});

describe('lz4: frames without content', () => {
  const repeat = (frame: Buffer, count: number) => Buffer.concat(Array<Buffer>(count).fill(frame));
  const skippable = Buffer.from('502a4d1800000000', 'hex');

  test.each([
    ['empty', emptyFrame()],
    ['skippable', skippable],
  ])('lz4: many that are %s leave the event loop its turns', async (_, frame) => {
    const frames = repeat(frame, 100_000);
    let turns = 0;
    let timer: Timer | undefined;
    async function* read() {
      timer = setInterval(() => (turns += 1), 0);
      yield frames;
    }
    expect(await Array.fromAsync(decompressLz4(read()))).toEqual([]);
    clearInterval(timer);
    expect(turns).toBeGreaterThan(0);
  });

  test('lz4: more than 100,000 are refused', async () => {
    for (const frame of [emptyFrame(), skippable]) {
      expect(await refusalOf(repeat(frame, 100_001))).toBe('the lz4 stream has more than 100000 frames');
    }
  });

  test('lz4: frames share no content, whatever the length of their blocks', async () => {
    const large = emptyFrame();
    const block = Buffer.from('0a00008061616161616161616161', 'hex');
    const content = Buffer.concat([large.subarray(0, 7), block, Buffer.alloc(4)]);
    const earlier = frameOf(0x10, 0x61, 0x02, 0x00, 0x00);
    expect(String(await decompress(Buffer.concat([content, frameOf(0x10, 0x62), content])))).toBe(
      `${'a'.repeat(10)}b${'a'.repeat(10)}`,
    );
    expect(await refusalOf(Buffer.concat([content, earlier]))).toBe(DAMAGED);
  });
});

const HAS_LZ4 = Bun.which('lz4') !== null;

describe.skipIf(!HAS_LZ4)('lz4: what the lz4 program compresses is decompressed:', () => {
  const words = Array.from({ length: 5_000 }, (_, n) => `word-${(n * 7_919) % 4_999} `).join('');
  const noise = crypto.getRandomValues(new Uint8Array(60_000));
  const contentOf = (repeated_bytes: number, repeats: number) =>
    Buffer.concat([
      Buffer.from(words),
      noise,
      Buffer.alloc(repeated_bytes, 'a'),
      noise,
      Buffer.from(words.repeat(repeats)),
    ]);
  const content = contentOf(MIB / 2, 4);
  /** More than one block of the default size, which is 4 MiB. */
  const large = contentOf(5 * MIB, 40);

  const CASES: [what: string, content: Buffer, options: string[]][] = [
    ['as it is by default', large, []],
    ['with blocks that depend on earlier ones', content, ['-BD', '-B4']],
    ['with independent blocks of 64 KiB', content, ['-BI', '-B4']],
    ['with a hash of each block', content, ['-BX', '-B5']],
    ['without a hash of the content', content, ['--no-frame-crc']],
    ['with the length of the content', large, ['--content-size', '-BD']],
    ['with most effort', content, ['-12', '-BD']],
    ['with least effort', content, ['--fast=9']],
  ];
  test.each(CASES)('%s', async (_, content, options) => {
    const compressed = await compress(content, ...options);
    for (const chunk_bytes of [65_536, 9_973]) {
      expect((await decompress(compressed, chunk_bytes)).equals(content)).toBe(true);
    }
  });

  test('nothing, several files in a row, and one byte at a time', async () => {
    const small = Buffer.from('a small file, a small file, a small file');
    expect(await decompress(await compress(Buffer.alloc(0)))).toEqual(Buffer.alloc(0));
    const skippable = Buffer.from('502a4d1803000000616263', 'hex');
    const several = Buffer.concat([await compress(small), skippable, await compress(content), await compress(small)]);
    expect((await decompress(several)).equals(Buffer.concat([small, content, small]))).toBe(true);
    expect(await decompress(await compress(small), 1)).toEqual(small);
  });

  test('with a changed byte it is refused', async () => {
    const frame = await compress(content.subarray(0, 90_000), '-BX', '-BD', '-B4');
    // Each byte of the header, and some of the content.
    for (let offset = 0; offset < frame.length; offset += offset < 20 ? 1 : 1_009) {
      const changed = Buffer.from(frame);
      changed[offset] = (changed[offset] ?? 0) ^ 0x10;
      expect(await refusalOf(changed)).toMatch(/^the lz4 stream (is damaged|ends too early)$/);
    }
  });

  test('cut anywhere it is refused', async () => {
    const frame = await compress(content.subarray(0, 90_000));
    for (let length = 1; length < frame.length; length += 997) {
      expect(await refusalOf(frame.subarray(0, length))).toBe('the lz4 stream ends too early');
    }
  });
});

describe('lz4: hostile blocks are refused', () => {
  const CASES: [what: string, block: number[]][] = [
    ['a match before the beginning', [0x10, 0x61, 0x02, 0x00, 0x00]],
    ['a match without a distance', [0x10, 0x61, 0x00, 0x00, 0x00]],
    ['more literals than there are bytes', [0xf0, 0xff, 0xff, 0x10, 0x61]],
    ['a length without an end', [0xf0, 0xff, 0xff, 0xff]],
    ['a match longer than a block', [0x1f, 0x61, 0x01, 0x00, ...Array<number>(300).fill(0xff), 0x00, 0x00]],
    ['a match without an end', [0x10, 0x61, 0x01]],
    ['a match at the end, where literals belong', [0x10, 0x61, 0x01, 0x00]],
  ];
  test.each(CASES)('%s', async (_, block) => {
    expect(await refusalOf(frameOf(...block))).toBe(DAMAGED);
  });

  test('a block longer than its frame allows', async () => {
    const frame = frameOf(0x10, 0x61);
    frame.writeUInt32LE(64 * 1024 + 1, 7);
    expect(await refusalOf(frame)).toBe(DAMAGED);
  });

  test('an honest block of the same making is accepted', async () => {
    expect(String(await decompress(frameOf(0x12, 0x61, 0x01, 0x00, 0x10, 0x62)))).toBe('aaaaaaab');
  });
});
