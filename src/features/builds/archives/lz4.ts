import xxhash from 'xxhash-wasm';
import { pace } from '../../../platform/pacing.ts';

/** The first bytes of a frame, in hexadecimal. */
export const LZ4_MAGIC = '04224d18';

/** The largest block of each code in a frame's header. */
const BLOCK_BYTES_MAX: Record<number, number> = { 4: 64 * 1024, 5: 256 * 1024, 6: 1024 ** 2, 7: 4 * 1024 ** 2 };
/** How far back a match may reach, also into the blocks before. */
const WINDOW_BYTES = 64 * 1024;
const MATCH_BYTES_MIN = 4;
/** Up to this length, a loop is faster than a call. */
const SHORT_BYTES = 48;
const SKIPPABLE_MAGIC = /^5.2a4d18$/;
/** As many as an archive may have entries. A frame may be empty, so the length of the content does not limit them. */
const FRAMES_MAX = 100_000;
/**
 * Maximum number of blocks in all frames together: `free`, and one more for every `content_bytes_each` of content. Each
 * block costs time, however short it is. Programs fill blocks of 64 KiB or more, except the last one of a frame.
 */
const BLOCKS_MAX = { free: 100_000, content_bytes_each: 4_096 };
const IS_RAW = 0x80_00_00_00;

const DAMAGED = 'the lz4 stream is damaged';

/**
 * Decompresses lz4 frames, block by block, so that a file of any size needs a few MiB of memory. The input may be hostile:
 * every length is checked before it is used. (The libraries for JavaScript either read the whole file into memory, or do
 * not check lengths, or refuse blocks that depend on earlier ones, which is what most programs write.)
 */
export async function* decompressLz4(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const input = createByteReader(source);
  const hashing = await xxhash();
  const buffer: OutputBuffer = { bytes: Buffer.alloc(0) };
  const read = { blocks: 0, content_bytes: 0 };
  for (let frames = 0; ; frames += 1) {
    await pace();
    const magic = (await input.take(4, { may_end: true }))?.toString('hex');
    if (magic === undefined) return;
    if (frames === FRAMES_MAX) throw new Error(`the lz4 stream has more than ${FRAMES_MAX} frames`);
    if (SKIPPABLE_MAGIC.test(magic)) await input.skip(readLength(await input.take(4)));
    else if (magic === LZ4_MAGIC) yield* decompressFrame({ input, hashing, buffer, read });
    else throw new Error(DAMAGED);
  }
}

type ByteReader = ReturnType<typeof createByteReader>;
type Hashing = Awaited<ReturnType<typeof xxhash>>;

/** The window of earlier bytes, and behind it the block that is being decompressed. All frames use the same bytes. */
interface OutputBuffer {
  bytes: Buffer;
}

/** What was read so far, of all frames together. */
interface ReadCount {
  blocks: number;
  content_bytes: number;
}

interface FrameSource {
  input: ByteReader;
  hashing: Hashing;
  buffer: OutputBuffer;
  read: ReadCount;
}

async function* decompressFrame({ input, hashing, buffer, read }: FrameSource): AsyncGenerator<Uint8Array, void> {
  const frame = await readFrameHeader(input, hashing);
  const content_hash = frame.has_content_hash ? hashing.create32(0) : undefined;
  const output_bytes = WINDOW_BYTES + frame.block_bytes_max;
  if (buffer.bytes.length < output_bytes) buffer.bytes = Buffer.alloc(output_bytes);
  const output = buffer.bytes.subarray(0, output_bytes);
  let window_bytes = 0;
  for (;;) {
    await pace();
    const header = readLength(await input.take(4));
    if (header === 0) break;
    countBlock(read);
    const is_raw = header >= IS_RAW;
    const length = is_raw ? header - IS_RAW : header;
    if (length > frame.block_bytes_max) throw new Error(DAMAGED);
    const block = await input.take(length);
    if (frame.has_block_hashes) checkHash(hashing.h32Raw(block), await input.take(4));
    const end = is_raw
      ? WINDOW_BYTES + block.copy(output, WINDOW_BYTES)
      : decompressBlock(block, output, WINDOW_BYTES - window_bytes);
    // The consumer may keep the bytes, and the buffer is used again.
    const content = Buffer.from(output.subarray(WINDOW_BYTES, end));
    content_hash?.update(content);
    read.content_bytes += content.length;
    output.copyWithin(0, end - WINDOW_BYTES, end);
    window_bytes = frame.is_linked ? Math.min(WINDOW_BYTES, window_bytes + content.length) : 0;
    if (content.length > 0) yield content;
  }
  if (content_hash) checkHash(content_hash.digest(), await input.take(4));
}

function countBlock(read: ReadCount): void {
  read.blocks += 1;
  const { free, content_bytes_each } = BLOCKS_MAX;
  if (read.blocks > free + read.content_bytes / content_bytes_each) {
    throw new Error(`the lz4 stream has blocks of less than ${content_bytes_each} bytes on average`);
  }
}

async function readFrameHeader(input: ByteReader, hashing: Hashing) {
  const start = await input.take(2);
  const [flags = 0, sizes = 0] = start;
  const has = (bit: number) => (flags & (1 << bit)) !== 0;
  const has_content_length = has(3);
  const has_dictionary = has(0);
  const block_bytes_max = BLOCK_BYTES_MAX[sizes >> 4];
  if (flags >> 6 !== 1 || has(1) || block_bytes_max === undefined) throw new Error(DAMAGED);
  if (has_dictionary) throw new Error('the lz4 stream needs a dictionary');
  const rest = await input.take(has_content_length ? 8 : 0);
  const [hash] = await input.take(1);
  if (hash !== ((hashing.h32Raw(Buffer.concat([start, rest])) >> 8) & 0xff)) throw new Error(DAMAGED);
  return { block_bytes_max, is_linked: !has(5), has_block_hashes: has(4), has_content_hash: has(2) };
}

/**
 * Decompresses a block to the output behind its window. Matches may reach back to `oldest`. Returns the end of the
 * block's content.
 */
function decompressBlock(block: Buffer, output: Buffer, oldest: number): number {
  let [from, to] = [0, WINDOW_BYTES];

  /** Reads the rest of a length of four bits: if they are all set, bytes follow and are added, up to one below 255. */
  function readRest(length: number): number {
    if (length !== 15) return length;
    let total = length;
    let byte: number;
    do {
      byte = block[from] ?? Number.NaN;
      from += 1;
      total += byte;
    } while (byte === 255);
    return total;
  }

  while (from < block.length) {
    const token = block.readUInt8(from);
    from += 1;
    const literals = readRest(token >> 4);
    // Also false for a length that was cut, which is not a number.
    if (!(from + literals <= block.length && to + literals <= output.length)) throw new Error(DAMAGED);
    if (literals > SHORT_BYTES) output.set(block.subarray(from, from + literals), to);
    else for (let at = 0; at < literals; at += 1) output[to + at] = block[from + at] ?? 0;
    from += literals;
    to += literals;
    // The last sequence of a block has no match.
    if (from === block.length) return to;
    if (from + 2 > block.length) throw new Error(DAMAGED);
    const distance = block.readUInt16LE(from);
    from += 2;
    const length = readRest(token & 15) + MATCH_BYTES_MIN;
    if (!(distance > 0 && to - distance >= oldest && to + length <= output.length)) throw new Error(DAMAGED);
    to = copyMatch(output, { to, distance, length });
  }
  throw new Error(DAMAGED);
}

/** Copies earlier output to its end. A match longer than its distance repeats itself. Returns the new end. */
function copyMatch(output: Buffer, { to, distance, length }: { to: number; distance: number; length: number }): number {
  const end = to + length;
  if (length <= SHORT_BYTES) {
    for (let at = to; at < end; at += 1) output[at] = output[at - distance] ?? 0;
    return end;
  }
  let copied = Math.min(distance, length);
  output.copyWithin(to, to - distance, to - distance + copied);
  while (copied < length) {
    const more = Math.min(copied, length - copied);
    output.copyWithin(to + copied, to, to + more);
    copied += more;
  }
  return end;
}

function readLength(bytes: Buffer): number {
  return bytes.readUInt32LE();
}

function checkHash(hash: number, expected: Buffer): void {
  if (hash >>> 0 !== expected.readUInt32LE()) throw new Error(DAMAGED);
}

/** Reads exact numbers of bytes from chunks of any length. */
function createByteReader(source: AsyncIterable<Uint8Array>) {
  const chunks = source[Symbol.asyncIterator]();
  const queue: Buffer[] = [];
  let held_bytes = 0;

  async function readMore(): Promise<boolean> {
    const { value, done } = await chunks.next();
    if (done) return false;
    queue.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    held_bytes += value.byteLength;
    return true;
  }

  /** Removes up to the given number of bytes from the front of the queue. */
  function shift(length: number): Buffer {
    const pieces: Buffer[] = [];
    let left = Math.min(length, held_bytes);
    held_bytes -= left;
    while (left > 0) {
      const first = queue.shift() ?? Buffer.alloc(0);
      pieces.push(first.subarray(0, left));
      if (first.length > left) queue.unshift(first.subarray(left));
      left -= Math.min(left, first.length);
    }
    const [only = Buffer.alloc(0), ...others] = pieces;
    return others.length === 0 ? only : Buffer.concat(pieces);
  }

  async function take(length: number): Promise<Buffer>;
  async function take(length: number, options: { may_end: true }): Promise<Buffer | undefined>;
  async function take(length: number, { may_end = false } = {}): Promise<Buffer | undefined> {
    while (held_bytes < length) {
      if (await readMore()) continue;
      if (may_end && held_bytes === 0) return undefined;
      throw new Error('the lz4 stream ends too early');
    }
    return shift(length);
  }

  return {
    take,
    async skip(length: number): Promise<void> {
      let left = length;
      while (left > 0) {
        if (held_bytes === 0 && !(await readMore())) throw new Error('the lz4 stream ends too early');
        left -= shift(left).length;
      }
    },
  };
}
