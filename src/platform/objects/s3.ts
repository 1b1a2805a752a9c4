import { assert, ServiceError, StartError } from '../errors.ts';
import { createByteShare } from '../pacing.ts';
import { createIdleTimeout, type IdleTimeout } from './idle-timeout.ts';
import { checkedKey, checkLength, type Objects, toReadableStream } from './objects.ts';
import { createS3Requests, retryTemporary, S3Failure, type S3Requests, unavailable } from './s3-requests.ts';
import type { S3Settings } from './s3-settings.ts';

/** S3's maximum for one PUT. */
const OBJECT_BYTES_MAX = 5 * 1024 ** 3;
/** How long the storage may be silent while it is its turn to send or receive. */
const IDLE_MS = 30_000;
/** S3's maximum for one page of a list. */
const PAGE_MAX = 1_000;
const LISTED_MAX = 100_000;
const REMOVED_AT_ONCE = 16;
/** Bytes that all reads together pass on before other requests get their turn. */
const READ_BYTES_EACH_TURN = 1024 ** 2;

/** Failures that only an operator can fix. Others pass once the storage, or a proxy before it, answers again. */
const FINAL =
  /^(NoSuchBucket|NoSuchKey|AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|InvalidBucketName|AuthorizationHeaderMalformed|Unauthorized|InvalidSecurity|InvalidToken|ExpiredToken|NotImplemented|AllAccessDisabled|PermanentRedirect|InvalidArgument|InvalidRequest|MethodNotAllowed|RequestTimeTooSkewed|ERR_\w+|\w*CERT\w*|\w*LEAF_SIGNATURE)$/;

interface S3Options {
  idle_ms?: number;
  /** Ends the wait for the first answer, which then throws the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** Opens the objects of a bucket. Throws OBJECTS_UNAVAILABLE while it is unavailable, and StartError if it cannot be used. */
export async function openS3Objects(
  settings: S3Settings,
  { idle_ms = IDLE_MS, signal }: S3Options = {},
): Promise<Objects> {
  const { endpoint, bucket, prefix } = settings;
  const requests = createS3Requests(settings, idle_ms);
  try {
    await requests.list({ prefix, maxKeys: 1, signal });
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    const cause = error instanceof ServiceError ? error.cause : error;
    const reason = cause instanceof Error ? cause.message.split(': ').at(-1) : cause;
    if (!FINAL.test(String(reason))) {
      const failure = new Error(`the bucket "${bucket}" at ${endpoint} does not answer (${reason})`);
      throw new ServiceError('OBJECTS_UNAVAILABLE', {}, { cause: failure });
    }
    throw new StartError(
      `The bucket "${bucket}" at ${endpoint} cannot be used (${reason}): create the bucket, or correct the settings S3_….`,
    );
  }
  return createS3Objects(requests, prefix, idle_ms);
}

/**
 * Stores objects in a bucket, by their keys. Each is one PUT with its length, so S3 stores all of it or nothing. Content
 * is streamed: only a few chunks are in memory.
 */
function createS3Objects(requests: S3Requests, prefix: string, idle_ms: number): Objects {
  const nameOf = (key: string) => `${prefix}${checkedKey(key)}`;
  const takeShare = createByteShare(READ_BYTES_EACH_TURN);

  async function list(folder: string): Promise<Map<string, number>> {
    const sizes = new Map<string, number>();
    const wanted = { prefix: `${nameOf(folder)}/`, maxKeys: PAGE_MAX };
    let page = await retryTemporary(() => requests.list(wanted));
    for (;;) {
      for (const { key, size } of page.contents ?? []) sizes.set(key.slice(prefix.length), size ?? 0);
      assert(sizes.size <= LISTED_MAX, `a folder has at most ${LISTED_MAX} objects`);
      const continuationToken = page.isTruncated ? page.nextContinuationToken : undefined;
      if (!continuationToken) return sizes;
      page = await retryTemporary(() => requests.list({ ...wanted, continuationToken }));
    }
  }

  async function remove(keys: string[]): Promise<void> {
    const removeOne = async (name: string) => {
      const idle = createIdleTimeout(idle_ms);
      const response = await requests.send('DELETE', name, { idle, wanted: [200, 204, 404] });
      await response.body?.cancel();
    };
    const names = keys.map(nameOf);
    for (let first = 0; first < names.length; first += REMOVED_AT_ONCE) {
      const some = names.slice(first, first + REMOVED_AT_ONCE);
      await Promise.all(some.map((name) => retryTemporary(() => removeOne(name))));
    }
  }

  return {
    object_bytes_max: OBJECT_BYTES_MAX,
    async put(key, content, length_bytes) {
      const name = nameOf(key);
      const idle = createIdleTimeout(idle_ms);
      const sending: Sending = { bytes: checkLength(content, length_bytes), failure: undefined };
      const body = toReadableStream(sendChunks(sending, idle));
      const headers = { 'content-length': String(length_bytes) };
      try {
        const response = await requests.send('PUT', name, { idle, wanted: [200], headers, body });
        await response.body?.cancel();
      } catch (error) {
        // A failure of the content is the cause of the request's failure.
        throw sending.failure ?? error;
      } finally {
        await sending.bytes.return();
      }
    },
    list,
    // Nothing to do: a bucket keeps nothing of an incomplete object.
    async removeUnfinished() {},
    async read(key, range) {
      const name = nameOf(key);
      const headers: Record<string, string> = {
        // A compressed answer would have neither a length nor a range.
        'accept-encoding': 'identity',
        ...(range && { range: `bytes=${range.start}-${range.end}` }),
      };
      return await retryTemporary(async () => {
        const idle = createIdleTimeout(idle_ms);
        const response = await requests.send('GET', name, { idle, wanted: [range ? 206 : 200], headers });
        const length_bytes = range ? range.end - range.start + 1 : Number(response.headers.get('content-length'));
        return toReadableStream(receiveChunks(response, { name, length_bytes, idle, takeShare }));
      });
    },
    remove,
    removeFolder: async (folder) => await remove([...(await list(folder)).keys()]),
  };
}

interface Sending {
  bytes: AsyncGenerator<Uint8Array, void>;
  /** Why the content ended early. */
  failure: unknown;
}

/** Yields the content. The timeout runs while the storage takes a chunk, not while the client sends one. */
async function* sendChunks(sending: Sending, idle: IdleTimeout): AsyncGenerator<Uint8Array, void> {
  try {
    idle.stop();
    for await (const chunk of sending.bytes) {
      idle.start();
      yield chunk;
      idle.stop();
    }
    idle.start();
  } catch (error) {
    sending.failure = error;
    throw error;
  }
}

interface Receiving {
  name: string;
  length_bytes: number;
  idle: IdleTimeout;
  /** Waits until the chunk may be passed on. */
  takeShare(chunk_bytes: number): Promise<void>;
}

/** Yields the bytes of an answer. Throws if the answer ends early. */
async function* receiveChunks(
  { body }: Response,
  { name, length_bytes, idle, takeShare }: Receiving,
): AsyncGenerator<Uint8Array, void> {
  let received = 0;
  try {
    idle.start();
    for await (const chunk of body ?? []) {
      idle.stop();
      received += chunk.length;
      await takeShare(chunk.length);
      yield chunk;
      idle.start();
    }
  } catch (error) {
    throw unavailable(`GET ${name}`, error);
  } finally {
    idle.stop();
  }
  if (received !== length_bytes)
    throw unavailable(`GET ${name}`, new S3Failure(`received ${received} of ${length_bytes} bytes`, false));
}
