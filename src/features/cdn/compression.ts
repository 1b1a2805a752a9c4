import { once } from 'node:events';
import type { Transform } from 'node:stream';
import { constants, createBrotliCompress, createGzip, createZstdCompress } from 'node:zlib';
import type { Encoding } from './rules.ts';

/** Of 11: about as fast as gzip, and smaller. The default is for files that are compressed once. */
const BROTLI_QUALITY = 4;

/** Compresses while it is sent: what is in memory is a window, not the file. */
export function compress(content: ReadableStream<Uint8Array>, encoding: Encoding): ReadableStream<Uint8Array> {
  const compressor = createCompressor(encoding);
  const compressed = compressor.iterator();
  void feed(content, compressor);
  return new ReadableStream({
    async pull(sink) {
      const { done, value } = await compressed.next();
      if (done) sink.close();
      else sink.enqueue(value);
    },
    cancel: () => void compressor.destroy(),
  });
}

/** Writes as fast as is read; ends with the reader when he goes. A failure is the reader's to hear. */
async function feed(content: ReadableStream<Uint8Array>, compressor: Transform): Promise<void> {
  try {
    for await (const chunk of content) {
      if (compressor.destroyed) return;
      if (!compressor.write(chunk)) await Promise.race([once(compressor, 'drain'), once(compressor, 'close')]);
    }
    compressor.end();
  } catch (error) {
    compressor.destroy(error instanceof Error ? error : new Error(String(error)));
  }
}

function createCompressor(encoding: Encoding): Transform {
  switch (encoding) {
    case 'zstd':
      return createZstdCompress();
    case 'br':
      return createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } });
    case 'gzip':
      return createGzip();
  }
}
