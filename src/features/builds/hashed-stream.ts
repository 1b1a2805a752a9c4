/** A stream whose bytes are hashed while they are read. */
export interface HashedStream {
  stream: ReadableStream<Uint8Array>;
  /** Reads what is left, and returns the SHA-256 of all bytes in hexadecimal. */
  digest(): Promise<string>;
  /** Ends the stream without reading the rest. */
  close(): Promise<void>;
}

/** Hashes a stream while it is read, so that a large file is not read twice. */
export function hashStream(source: ReadableStream<Uint8Array>): HashedStream {
  const reader = source.getReader();
  const hasher = new Bun.CryptoHasher('sha256');

  async function readNext(): Promise<Uint8Array | undefined> {
    const { value } = await reader.read();
    if (value) hasher.update(value);
    return value;
  }

  return {
    // A reader may stop early, for example at the end of a compressed file with bytes behind it. `digest` reads those.
    stream: new ReadableStream<Uint8Array>({
      async pull(controller) {
        const chunk = await readNext();
        if (chunk) controller.enqueue(chunk);
        else controller.close();
      },
    }),
    async digest() {
      while (await readNext());
      return hasher.digest('hex');
    },
    close: () => reader.cancel(),
  };
}
