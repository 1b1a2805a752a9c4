import { assert, ServiceError, StartError } from '../errors.ts';
import { checkedKey, exactly, type Objects, streamOf } from './objects.ts';
import { createPatience, type Patience } from './patience.ts';
import { createS3Requests, repeat, S3Failure, type S3Requests, unavailable } from './s3-requests.ts';
import type { S3Settings } from './s3-settings.ts';

/** What S3 takes in one PUT. */
const OBJECT_BYTES_MAX = 5 * 1024 ** 3;
/** How long the storage may be silent when it is its turn. */
const PATIENCE_MS = 30_000;
/** What S3 lists at most in one answer. */
const PAGE_MAX = 1_000;
const LISTED_MAX = 100_000;
const REMOVED_AT_ONCE = 16;

/** Objects in a bucket. Throws {@link StartError} unless the bucket answers. */
export async function openS3Objects(settings: S3Settings, patience_ms = PATIENCE_MS): Promise<Objects> {
  const { endpoint, bucket, prefix } = settings;
  const requests = createS3Requests(settings, patience_ms);
  try {
    await requests.list({ prefix, maxKeys: 1 });
  } catch (error) {
    const cause = error instanceof ServiceError ? error.cause : error;
    const reason = cause instanceof Error ? cause.message.split(': ').at(-1) : cause;
    throw new StartError(
      `The bucket "${bucket}" at ${endpoint} cannot be used (${reason}): start the storage, make the bucket, or correct the settings S3_….`,
    );
  }
  return createS3Objects(requests, prefix, patience_ms);
}

/**
 * Objects under the names that files have on disk. Each is one PUT whose length is said before, so S3 stores all of it or
 * nothing. It streams: a few pieces are in memory, however large it is.
 */
function createS3Objects(requests: S3Requests, prefix: string, patience_ms: number): Objects {
  const nameOf = (key: string) => `${prefix}${checkedKey(key)}`;

  async function list(folder: string): Promise<Map<string, number>> {
    const sizes = new Map<string, number>();
    const wanted = { prefix: `${nameOf(folder)}/`, maxKeys: PAGE_MAX };
    let page = await repeat(() => requests.list(wanted));
    for (;;) {
      for (const { key, size } of page.contents ?? []) sizes.set(key.slice(prefix.length), size ?? 0);
      assert(sizes.size <= LISTED_MAX, `a folder has at most ${LISTED_MAX} objects`);
      const continuationToken = page.isTruncated ? page.nextContinuationToken : undefined;
      if (!continuationToken) return sizes;
      page = await repeat(() => requests.list({ ...wanted, continuationToken }));
    }
  }

  async function remove(keys: string[]): Promise<void> {
    const removeOne = async (name: string) => {
      const patience = createPatience(patience_ms);
      const response = await requests.send('DELETE', name, { patience, wanted: [200, 204, 404] });
      await response.body?.cancel();
    };
    const names = keys.map(nameOf);
    for (let first = 0; first < names.length; first += REMOVED_AT_ONCE) {
      const some = names.slice(first, first + REMOVED_AT_ONCE);
      await Promise.all(some.map((name) => repeat(() => removeOne(name))));
    }
  }

  return {
    object_bytes_max: OBJECT_BYTES_MAX,
    async put(key, content, length_bytes) {
      const name = nameOf(key);
      const patience = createPatience(patience_ms);
      const sending: Sending = { bytes: exactly(content, length_bytes), failure: undefined };
      const body = streamOf(offer(sending, patience));
      const headers = { 'content-length': String(length_bytes) };
      try {
        const response = await requests.send('PUT', name, { patience, wanted: [200], headers, body });
        await response.body?.cancel();
      } catch (error) {
        // That the content failed says more than that the request was cut for it.
        throw sending.failure ?? error;
      } finally {
        await sending.bytes.return();
      }
    },
    list,
    // A bucket keeps nothing of an object that did not come whole.
    async removeUnfinished() {},
    async read(key, range) {
      const name = nameOf(key);
      const headers: Record<string, string> = {
        // Some storages compress on the way, and then there is neither a length nor a range.
        'accept-encoding': 'identity',
        ...(range && { range: `bytes=${range.start}-${range.end}` }),
      };
      return await repeat(async () => {
        const patience = createPatience(patience_ms);
        const response = await requests.send('GET', name, { patience, wanted: [range ? 206 : 200], headers });
        const length_bytes = range ? range.end - range.start + 1 : Number(response.headers.get('content-length'));
        return streamOf(receive(response, { name, length_bytes, patience }));
      });
    },
    remove,
    removeFolder: async (folder) => await remove([...(await list(folder)).keys()]),
  };
}

interface Sending {
  bytes: AsyncGenerator<Uint8Array, void>;
  /** Why the content did not come to its end. */
  failure: unknown;
}

/** What is to be sent. Between two pieces it is the storage's turn; whoever sends the content may take longer. */
async function* offer(sending: Sending, patience: Patience): AsyncGenerator<Uint8Array, void> {
  try {
    patience.end();
    for await (const chunk of sending.bytes) {
      patience.begin();
      yield chunk;
      patience.end();
    }
    patience.begin();
  } catch (error) {
    sending.failure = error;
    throw error;
  }
}

/** The bytes of an answer, all of them: one that was cut fails. */
async function* receive(
  { body }: Response,
  { name, length_bytes, patience }: { name: string; length_bytes: number; patience: Patience },
): AsyncGenerator<Uint8Array, void> {
  let received = 0;
  try {
    patience.begin();
    for await (const chunk of body ?? []) {
      patience.end();
      received += chunk.length;
      yield chunk;
      patience.begin();
    }
  } catch (error) {
    throw unavailable(`GET ${name}`, error);
  } finally {
    patience.end();
  }
  if (received !== length_bytes)
    throw unavailable(`GET ${name}`, new S3Failure(`${received} of ${length_bytes} bytes came`, false));
}
