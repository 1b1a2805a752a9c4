import { lstatSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { UNPACK_LIMITS, type UnpackLimits } from '../../src/features/builds/archives/tar-reader.ts';
import { unpackArchive } from '../../src/features/builds/archives/unpack.ts';
import { buildRefusalOf } from './build-refusal.ts';
import { listTree } from './tar.ts';

/** The ways in which an archive may be compressed. */
export const PACKINGS: Record<string, (tar: Uint8Array) => Uint8Array> = {
  tar: (tar) => tar,
  'tar.gz': (tar) => gzipSync(tar),
  'tar.zst': (tar) => zstdCompressSync(tar),
  'tar.lz4': packLz4,
};

const LZ4_BLOCK_BYTES = 64 * 1024;

/** Writes a frame of lz4 with blocks that are stored as they are, and a hash of the content. */
function packLz4(content: Uint8Array): Uint8Array {
  const number = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value >>> 0);
    return bytes;
  };
  const header = Buffer.from([0x64, 0x40]);
  const pieces: Uint8Array[] = [header, Buffer.from([(Bun.hash.xxHash32(header) >> 8) & 0xff])];
  for (let at = 0; at < content.length; at += LZ4_BLOCK_BYTES) {
    const block = content.subarray(at, at + LZ4_BLOCK_BYTES);
    pieces.push(number(block.length | 0x80_00_00_00), block);
  }
  return Buffer.concat([Buffer.from('04224d18', 'hex'), ...pieces, number(0), number(Bun.hash.xxHash32(content))]);
}

/** The result of unpacking an archive. */
export interface Unpacked {
  /** Why it was refused, without the common beginning of all refusals; undefined if it was accepted. */
  refusal: string | undefined;
  /** The unpacked entries, with modes. */
  tree: Record<string, string>;
  /** The text of each file, unless it is large. */
  contents: Record<string, string>;
  /** Bytes of all files together. */
  unpacked_bytes: number;
  /** The entries outside the directory, where only a note was. */
  outside: Record<string, string>;
}

/** What is outside the directory of an unpacked archive: the note. */
export const UNTOUCHED = { note: 'untouched' };

const LARGE_BYTES = 65_536;

/** Unpacks an archive and reads the result. Fails for any refusal but BUILDS_BUILD_INVALID. */
export async function unpack(
  archive: Uint8Array | ReadableStream<Uint8Array>,
  limits: Partial<UnpackLimits> = {},
): Promise<Unpacked> {
  const parent = await mkdtemp(join(tmpdir(), 'muster-unpack-'));
  try {
    const directory = join(parent, 'inside/build');
    await mkdir(directory, { recursive: true });
    await Bun.write(join(parent, 'note'), 'untouched');
    const stream = archive instanceof ReadableStream ? archive : new Blob([new Uint8Array(archive)]).stream();
    const refusal = await buildRefusalOf(unpackArchive(stream, directory, { limits: { ...UNPACK_LIMITS, ...limits } }));
    const tree = await listTree(directory);
    const contents = await readAll(directory, tree);
    const unpacked_bytes = Object.keys(tree).reduce((sum, path) => sum + sizeOf(join(directory, path)), 0);
    await rm(directory, { recursive: true });
    const outside = await readAll(parent, await listTree(parent));
    return { refusal, tree, contents, unpacked_bytes, outside };
  } finally {
    await rm(parent, { recursive: true, force: true });
  }
}

function sizeOf(path: string): number {
  const stats = lstatSync(path);
  return stats.isFile() ? stats.size : 0;
}

async function readAll(directory: string, tree: Record<string, string>): Promise<Record<string, string>> {
  const texts: Record<string, string> = {};
  for (const [path, description] of Object.entries(tree)) {
    const file = Bun.file(join(directory, path));
    if (description.startsWith('file') && file.size <= LARGE_BYTES) texts[path] = await file.text();
  }
  return texts;
}
