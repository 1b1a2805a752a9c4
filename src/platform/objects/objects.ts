import { assert, ServiceError } from '../errors.ts';

/** A range of an object's bytes; `end` is included. */
export interface ByteRange {
  start: number;
  end: number;
}

/** The store of uploaded files. Keys consist of ids, numbers and slashes, never of a user's text. */
export interface Objects {
  /** The largest object that can be stored. */
  object_bytes_max: number;
  /**
   * Stores exactly `length_bytes` bytes under a key, or nothing at all. Replaces an earlier object. Throws
   * UPLOAD_LENGTH_MISMATCH if the content is shorter or longer.
   */
  put(key: string, content: AsyncIterable<Uint8Array>, length_bytes: number): Promise<void>;
  /** Lists the keys of the objects directly in a folder, with their sizes in bytes. */
  list(folder: string): Promise<Map<string, number>>;
  /**
   * Reads an object, or a range of it. Throws OBJECTS_UNAVAILABLE before the first byte if it cannot be read; its cause is a
   * MissingObject if the object does not exist.
   */
  read(key: string, range?: ByteRange): Promise<ReadableStream<Uint8Array>>;
  /** Removes objects, ignoring those that do not exist. */
  remove(keys: string[]): Promise<void>;
  /** Removes all objects of a folder. */
  removeFolder(folder: string): Promise<void>;
  /** Removes unfinished objects that were last written before a given time. */
  removeUnfinished(before: Date): Promise<void>;
}

/** An object that does not exist. Reading it again does not help. */
export class MissingObject extends Error {}

/** Returns whether reading failed because the object does not exist. */
export const isMissingObject = (error: unknown): boolean =>
  error instanceof ServiceError && error.cause instanceof MissingObject;

const KEY = /^[a-z0-9][a-z0-9.-]*(\/[a-z0-9][a-z0-9.-]*)*$/;

/** Returns whether a text can be the key of an object. Other programs add files of other names, such as `.nfs0001`. */
export const isKey = (text: string): boolean => KEY.test(text);

/** Returns a key or folder that is safe to use in a path or an address. */
export function checkedKey(key: string): string {
  assert(isKey(key), 'the key of an object stays inside the store');
  return key;
}

/**
 * Yields the content. Throws UPLOAD_LENGTH_MISMATCH unless it has exactly `length_bytes` bytes. Holds each chunk back
 * until the next one or the end arrives, so that the last chunk is yielded only if the length is right.
 */
export async function* checkLength(
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

/** Turns a generator into a stream that pulls only what is read. */
export function toReadableStream(bytes: AsyncGenerator<Uint8Array, void>): ReadableStream<Uint8Array> {
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
