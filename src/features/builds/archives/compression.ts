import { type Duplex, PassThrough } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { decompressLz4, LZ4_MAGIC } from './lz4.ts';

const GZIP_MAGIC = '1f8b';
const ZSTD_MAGIC = '28b52ffd';

/** Length of the first bytes, which show how a file is compressed. */
export const MAGIC_BYTES = 4;

/** Returns a step of a pipeline that decompresses a file: gzip, lz4 or zstd by its first bytes, otherwise none. */
export function createDecompressor(first_bytes: Uint8Array): Duplex | typeof decompressLz4 {
  const magic = Buffer.from(first_bytes).toString('hex', 0, MAGIC_BYTES);
  if (magic.startsWith(GZIP_MAGIC)) return createGunzip();
  if (magic === ZSTD_MAGIC) return createZstdDecompress();
  return magic === LZ4_MAGIC ? decompressLz4 : new PassThrough();
}
