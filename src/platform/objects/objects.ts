import { assert, ServiceError } from '../errors.ts';

/** Some bytes of an object, from the first to the last, both included. */
export interface ByteRange {
  start: number;
  end: number;
}

/** Where uploaded files lie. Keys are ours (ids and numbers with slashes), never a user's text. */
export interface Objects {
  /** The largest object that can be stored. */
  object_bytes_max: number;
  /**
   * Stores exactly `length_bytes` bytes under a key, replacing what was there, or nothing at all. Throws
   * UPLOAD_LENGTH_MISMATCH when fewer or more come.
   */
  put(key: string, content: AsyncIterable<Uint8Array>, length_bytes: number): Promise<void>;
  /** The objects right in a folder, by their keys, with their sizes in bytes. */
  list(folder: string): Promise<Map<string, number>>;
  /** The bytes, or those of a range. What is not there is refused before the first byte. */
  read(key: string, range?: ByteRange): Promise<ReadableStream<Uint8Array>>;
  /** Removes objects. Those that are not there already are. */
  remove(keys: string[]): Promise<void>;
  /** Removes all objects of a folder. */
  removeFolder(folder: string): Promise<void>;
  /** Removes what was left of `put` by processes that were killed before a moment. */
  removeUnfinished(before: Date): Promise<void>;
}

const KEY = /^[a-z0-9][a-z0-9.-]*(\/[a-z0-9][a-z0-9.-]*)*$/;

/** The key, or the folder, of an object as it may be used for a path or an address. */
export function checkedKey(key: string): string {
  assert(KEY.test(key), 'the key of an object leads nowhere else');
  return key;
}

/**
 * The same content, which fails unless it has exactly so many bytes (UPLOAD_LENGTH_MISMATCH). One piece is held back
 * until the next one or the end has come: whoever is given the last byte knows that it was the last.
 */
export async function* exactly(
  content: AsyncIterable<Uint8Array>,
  length_bytes: number,
): AsyncGenerator<Uint8Array, void> {
  let received = 0;
  let held: Uint8Array | undefined;
  for await (const chunk of content) {
    received += chunk.length;
    if (received > length_bytes) break;
    if (held) yield held;
    held = chunk;
  }
  if (received !== length_bytes) throw new ServiceError('UPLOAD_LENGTH_MISMATCH', { expected_bytes: length_bytes });
  if (held) yield held;
}

/** What a generator yields as a stream that asks for no more than is read. */
export function streamOf(bytes: AsyncGenerator<Uint8Array, void>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { value, done } = await bytes.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await bytes.return();
    },
  });
}
