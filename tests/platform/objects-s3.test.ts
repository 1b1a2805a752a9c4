import { afterEach, describe, expect, test } from 'bun:test';
import { inspect } from 'node:util';
import { rootMessageOf } from '../../src/platform/database/failures.ts';
import { ServiceError, StartError } from '../../src/platform/errors.ts';
import type { Objects } from '../../src/platform/objects/objects.ts';
import { openS3Objects } from '../../src/platform/objects/s3.ts';
import type { S3Settings } from '../../src/platform/objects/s3-settings.ts';
import { findFreePort } from '../support/network/test-ports.ts';
import { openTestBucket, TEST_S3 } from '../support/objects/s3.ts';
import { piecesOf } from '../support/pieces.ts';
import { rejectionOf } from '../support/refusal.ts';
import { waitFor } from '../support/wait.ts';

const SECRET = 'a-secret-of-the-bucket';
/** A limit for what must time out. */
const SHORT_MS = 500;
/** A limit for what must not time out. */
const LONG_MS = 30_000;
const EMPTY_LIST = '<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>';

let stub: AsyncDisposableStack | undefined;
afterEach(() => stub?.disposeAsync());

const settingsOf = (port: number): S3Settings => ({
  endpoint: `http://127.0.0.1:${port}`,
  bucket: 'bucket',
  region: 'us-east-1',
  access_key_id: 'key',
  secret_access_key: SECRET,
  prefix: '',
  is_virtual_hosted: false,
});

const isList = ({ url }: Request) => new URL(url).searchParams.has('list-type');
const refusal = (status: number, code: string) => new Response(`<Error><Code>${code}</Code></Error>`, { status });

/** Opens objects on a storage that answers as the test wants, after a normal answer at the start. */
async function openStub(
  answer: (request: Request) => Response | Promise<Response>,
  idle_ms = LONG_MS,
): Promise<Objects> {
  let is_open = false;
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    maxRequestBodySize: 1e9,
    fetch: (request) => (is_open ? answer(request) : new Response(EMPTY_LIST)),
  });
  stub = new AsyncDisposableStack();
  stub.defer(() => server.stop(true));
  const objects = await openS3Objects(settingsOf(server.port ?? 0), { idle_ms });
  is_open = true;
  return objects;
}

const textOf = async (objects: Objects, range?: { start: number; end: number }) =>
  await new Response(await objects.read('a/0', range)).text();

/** Every use of a storage. */
const USES: [name: string, use: (objects: Objects) => Promise<unknown>][] = [
  ['put', (objects) => objects.put('a/0', piecesOf('abc'), 3)],
  ['list', (objects) => objects.list('a')],
  ['read', (objects) => textOf(objects)],
  ['read a range', (objects) => textOf(objects, { start: 1, end: 2 })],
  ['remove', (objects) => objects.remove(['a/0'])],
  ['remove a folder', (objects) => objects.removeFolder('a')],
];

/** Returns what the caller gets and what only the log has. Neither contains a secret. */
async function failureOf(work: Promise<unknown>): Promise<string> {
  const error = await rejectionOf(ServiceError, work);
  expect(error).toMatchObject({ code: 'OBJECTS_UNAVAILABLE', status: 503, retry_after_ms: 1_000 });
  expect(error.message).toBe('The object storage is unavailable. Try again.');
  for (const secret of [SECRET, 'X-Amz', '127.0.0.1']) expect(inspect(error, { depth: 10 })).not.toContain(secret);
  return error.cause instanceof Error ? error.cause.message : '';
}

describe('a storage that', () => {
  test.each(USES)('does not answer times out: %s', async (_name, use) => {
    const objects = await openStub(() => new Promise(() => {}), SHORT_MS);
    expect(await failureOf(use(objects))).toEndWith('TimeoutError');
  });

  test.each(USES)('cannot be reached is reported as unreachable: %s', async (_name, use) => {
    const objects = await openStub(() => new Response());
    await stub?.disposeAsync();
    expect(await failureOf(use(objects))).toMatch(/^[A-Z]+ a\/0?: (ECONNREFUSED|ConnectionRefused)$/);
  });

  test.each(USES)('refuses its key is reported as refusing it: %s', async (_name, use) => {
    let request_count = 0;
    const objects = await openStub(() => {
      request_count += 1;
      return refusal(403, 'AccessDenied');
    });
    expect(await failureOf(use(objects))).toContain('AccessDenied');
    expect(request_count).toBeLessThan(4);
  });

  test('refuses with an endless answer is reported as refusing', async () => {
    const ended = Promise.withResolvers<void>();
    const objects = await openStub(({ signal }) => {
      signal.addEventListener('abort', () => ended.resolve());
      const body = new ReadableStream({
        start: (pieces) => pieces.enqueue(Buffer.from('<Error><Code>AccessDenied</Code>')),
        async pull(pieces) {
          pieces.enqueue(Buffer.alloc(65_536, ' '));
          await Bun.sleep(1);
        },
      });
      return new Response(body, { status: 403 });
    });
    expect(await failureOf(textOf(objects))).toBe('GET a/0: the answer is 403 AccessDenied');
    await ended.promise;
  });

  // Of these, Bun's client implements the list; it does follow redirects.
  const OWN_CLIENT_USES = USES.filter(([name]) => name !== 'list' && name !== 'remove a folder');
  test.each(OWN_CLIENT_USES)('redirects is not followed: %s', async (_name, use) => {
    const requests: string[] = [];
    const objects = await openStub(({ url }) => {
      requests.push(new URL(url).pathname);
      return new Response(null, { status: 307, headers: { location: '/elsewhere' } });
    });
    await failureOf(use(objects));
    expect(requests).not.toContain('/elsewhere');
  });

  test('is busy gets the request again, except for uploads', async () => {
    let request_count = 0;
    const objects = await openStub((request) => {
      request_count += 1;
      if (request_count < 3) return refusal(503, 'SlowDown');
      return isList(request) ? new Response(EMPTY_LIST) : new Response('abc');
    });
    expect(await textOf(objects)).toBe('abc');
    request_count = 0;
    expect(await objects.list('a')).toEqual(new Map());
    request_count = 0;
    await objects.remove(['a/0']);
    request_count = 0;
    expect(await failureOf(objects.put('a/0', piecesOf('abc'), 3))).toBe('PUT a/0: the answer is 503 SlowDown');
    expect(request_count).toBe(1);
  });
});

describe('a wrong answer of a storage is refused:', () => {
  test('a truncated answer', async () => {
    const whole = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n';
    const server = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket, data) {
          const is_list = data.toString().includes('list-type');
          const list = `HTTP/1.1 200 OK\r\nContent-Length: ${EMPTY_LIST.length}\r\n\r\n${EMPTY_LIST}`;
          socket.end(is_list ? list : `${whole}abc`);
        },
      },
    });
    stub = new AsyncDisposableStack();
    stub.defer(() => server.stop(true));
    const objects = await openS3Objects(settingsOf(server.port), { idle_ms: LONG_MS });
    const reading = objects.read('a/0').then((content) => new Response(content).text());
    expect(await failureOf(reading)).toStartWith('GET a/0: ');
  });

  test('an answer that stops in the middle', async () => {
    const objects = await openStub(() => {
      const body = new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('abc')) });
      return new Response(body, { headers: { 'content-length': '6' } });
    }, SHORT_MS);
    expect(await failureOf(textOf(objects))).toBe('GET a/0: TimeoutError');
  });

  test('an answer without the requested range', async () => {
    const objects = await openStub(() => new Response('abcdef'));
    expect(await failureOf(textOf(objects, { start: 1, end: 2 }))).toBe('GET a/0: the answer is 200');
  });

  test('an answer with another range', async () => {
    const objects = await openStub(() => new Response('abcdef', { status: 206 }));
    expect(await failureOf(textOf(objects, { start: 1, end: 2 }))).toBe('GET a/0: received 6 of 2 bytes');
  });
});

describe('objects in a bucket', () => {
  test('wait for a slow sender', async () => {
    const received = Promise.withResolvers<string>();
    const objects = await openStub(async (request) => {
      received.resolve(await request.text());
      return new Response();
    }, SHORT_MS);
    async function* slow() {
      yield Buffer.from('abc');
      await Bun.sleep(2 * SHORT_MS);
      yield Buffer.from('def');
    }
    await objects.put('a/0', slow(), 6);
    expect(await received.promise).toBe('abcdef');
  });

  test('wait for a slow reader', async () => {
    const objects = await openStub(() => new Response('a'.repeat(5_000_000)), SHORT_MS);
    let length = 0;
    let chunks = 0;
    for await (const chunk of await objects.read('a/0')) {
      length += chunk.length;
      chunks += 1;
      if (chunks < 3) await Bun.sleep(1.5 * SHORT_MS);
    }
    expect(length).toBe(5_000_000);
  });
});

test('objects in a bucket: end the request of a reader that disconnects, before or after the first byte', async () => {
  let ended = 0;
  const objects = await openStub(({ signal }) => {
    signal.addEventListener('abort', () => {
      ended += 1;
    });
    const body = new ReadableStream({
      async pull(controller) {
        controller.enqueue(new Uint8Array(65_536));
        await Bun.sleep(1);
      },
    });
    return new Response(body, { headers: { 'content-length': '1000000000' } });
  });
  await (await objects.read('a/0')).cancel();
  const reader = (await objects.read('a/0')).getReader();
  await reader.read();
  await reader.cancel();
  await waitFor(() => ended === 2, 'both requests to end');
});

test('objects in a bucket: read little of the content while the storage does not accept it', async () => {
  const objects = await openStub(() => new Promise(() => {}), SHORT_MS);
  const pieces = Array<string>(2_000).fill('a'.repeat(100_000));
  const content = piecesOf(...pieces);
  expect(await failureOf(objects.put('a/0', content, 200_000_000))).toBe('PUT a/0: TimeoutError');
  expect(content.requested_count).toBeLessThan(300);
  expect(content.is_closed).toBe(true);
});

describe('a start says what is wrong with the storage, without its secret:', () => {
  const unavailabilityOf = async (settings: S3Settings, idle_ms = LONG_MS) => {
    const error = await rejectionOf(ServiceError, openS3Objects(settings, { idle_ms }));
    expect(error.code).toBe('OBJECTS_UNAVAILABLE');
    expect(inspect(error)).not.toContain(SECRET);
    return rootMessageOf(error);
  };

  test('the start waits if nothing listens at its address', async () => {
    const settings = settingsOf(findFreePort());
    const message = `the bucket "bucket" at ${settings.endpoint} does not answer (ConnectionRefused)`;
    expect(await unavailabilityOf(settings)).toBe(message);
  });

  test('the start waits if the storage does not answer', async () => {
    const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
    stub = new AsyncDisposableStack();
    stub.defer(() => server.stop(true));
    expect(await unavailabilityOf(settingsOf(server.port), SHORT_MS)).toContain('(TimeoutError)');
  });

  test.each([
    [502, 'text/html', '<h1>Bad Gateway</h1>'],
    [503, 'application/xml', '<Error><Code>XMinioServerNotInitialized</Code><Message>Wait.</Message></Error>'],
  ])('the start waits while the storage, or a proxy before it, answers %d', async (status, type, body) => {
    const headers = { 'content-type': type };
    const server = Bun.serve({ port: 0, fetch: () => new Response(body, { status, headers }) });
    stub = new AsyncDisposableStack();
    stub.defer(() => server.stop(true));
    expect(await unavailabilityOf(settingsOf(server.port ?? 0))).toContain('does not answer (');
  });

  const problemOf = async (settings: S3Settings) => {
    const { message } = await rejectionOf(StartError, openS3Objects(settings));
    expect(message).not.toContain(SECRET);
    expect(message).toEndWith('create the bucket, or correct the settings S3_….');
    return message;
  };

  test.skipIf(TEST_S3 === undefined)('the start fails if the bucket, key or secret is wrong', async () => {
    const { parsed } = await openTestBucket();
    expect(await problemOf({ ...parsed, bucket: 'no-such-bucket' })).toContain('(NoSuchBucket)');
    expect(await problemOf({ ...parsed, secret_access_key: SECRET })).toContain('(SignatureDoesNotMatch)');
    expect(await problemOf({ ...parsed, access_key_id: 'unknown' })).toMatch(
      /\((InvalidAccessKeyId|AccessDenied|SignatureDoesNotMatch)\)/,
    );
    expect(await problemOf({ ...parsed, region: 'elsewhere' })).toContain('(AuthorizationHeaderMalformed)');
  });
});

test('objects in a bucket: with virtual hosting, the name of the bucket is in the host instead of the path', async () => {
  const requests: string[] = [];
  const server = Bun.serve({
    port: 0,
    fetch(request) {
      requests.push(`${request.method} ${request.headers.get('host')} ${new URL(request.url).pathname}`);
      return isList(request) ? new Response(EMPTY_LIST) : new Response('abc');
    },
  });
  stub = new AsyncDisposableStack();
  stub.defer(() => server.stop(true));
  const settings = { ...settingsOf(server.port ?? 0), endpoint: `http://localhost:${server.port}`, prefix: 'in/' };
  const objects = await openS3Objects({ ...settings, is_virtual_hosted: true }, { idle_ms: LONG_MS });
  expect(await textOf(objects)).toBe('abc');
  const host = `bucket.localhost:${server.port}`;
  expect(requests).toEqual([`GET ${host} /`, `GET ${host} /in/a/0`]);
});
