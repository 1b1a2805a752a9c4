import { afterEach, describe, expect, test } from 'bun:test';
import { inspect } from 'node:util';
import { ServiceError, StartError } from '../../src/platform/errors.ts';
import type { Objects } from '../../src/platform/objects/objects.ts';
import { openS3Objects } from '../../src/platform/objects/s3.ts';
import type { S3Settings } from '../../src/platform/objects/s3-settings.ts';
import { piecesOf } from '../support/pieces.ts';
import { rejectionOf } from '../support/refusal.ts';
import { openTestBucket, TEST_S3 } from '../support/s3.ts';
import { findFreePort } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';

const SECRET = 'a-secret-that-nobody-sees';
/** For what must be given up, and for what must not although it takes long. */
const SHORT_MS = 500;
/** For what is answered at once. */
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

/** Objects on a storage that answers as it is told, after it has answered at the start. */
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
  const objects = await openS3Objects(settingsOf(server.port ?? 0), idle_ms);
  is_open = true;
  return objects;
}

const textOf = async (objects: Objects, range?: { start: number; end: number }) =>
  await new Response(await objects.read('a/0', range)).text();

/** Every way to use a storage. */
const WAYS: [name: string, use: (objects: Objects) => Promise<unknown>][] = [
  ['put', (objects) => objects.put('a/0', piecesOf('abc'), 3)],
  ['list', (objects) => objects.list('a')],
  ['read', (objects) => textOf(objects)],
  ['read a range', (objects) => textOf(objects, { start: 1, end: 2 })],
  ['remove', (objects) => objects.remove(['a/0'])],
  ['remove a folder', (objects) => objects.removeFolder('a')],
];

/** What the caller is told, and what only the log has. Neither holds a secret. */
async function failureOf(work: Promise<unknown>): Promise<string> {
  const error = await rejectionOf(ServiceError, work);
  expect(error).toMatchObject({ code: 'OBJECTS_UNAVAILABLE', status: 503, retry_after_ms: 1_000 });
  expect(error.message).toBe('The object storage is unavailable. Try again.');
  for (const secret of [SECRET, 'X-Amz', '127.0.0.1']) expect(inspect(error, { depth: 10 })).not.toContain(secret);
  return error.cause instanceof Error ? error.cause.message : '';
}

describe('a storage that is', () => {
  test.each(WAYS)('silent is given up: %s', async (_name, use) => {
    const objects = await openStub(() => new Promise(() => {}), SHORT_MS);
    expect(await failureOf(use(objects))).toEndWith('TimeoutError');
  });

  test.each(WAYS)('gone is said to be: %s', async (_name, use) => {
    const objects = await openStub(() => new Response());
    await stub?.disposeAsync();
    expect(await failureOf(use(objects))).toMatch(/^[A-Z]+ a\/0?: (ECONNREFUSED|ConnectionRefused)$/);
  });

  test.each(WAYS)('not ours any more is said to be: %s', async (_name, use) => {
    let asked = 0;
    const objects = await openStub(() => {
      asked += 1;
      return refusal(403, 'AccessDenied');
    });
    expect(await failureOf(use(objects))).toContain('AccessDenied');
    expect(asked).toBeLessThan(4);
  });

  // Of the ways, Bun's client lists; it does follow.
  const OUR_WAYS = WAYS.filter(([name]) => name !== 'list' && name !== 'remove a folder');
  test.each(OUR_WAYS)('somewhere else is not followed: %s', async (_name, use) => {
    const asked: string[] = [];
    const objects = await openStub(({ url }) => {
      asked.push(new URL(url).pathname);
      return new Response(null, { status: 307, headers: { location: '/elsewhere' } });
    });
    await failureOf(use(objects));
    expect(asked).not.toContain('/elsewhere');
  });

  test('busy is asked again, but for what was sent', async () => {
    let asked = 0;
    const objects = await openStub((request) => {
      asked += 1;
      if (asked < 3) return refusal(503, 'SlowDown');
      return isList(request) ? new Response(EMPTY_LIST) : new Response('abc');
    });
    expect(await textOf(objects)).toBe('abc');
    asked = 0;
    expect(await objects.list('a')).toEqual(new Map());
    asked = 0;
    await objects.remove(['a/0']);
    asked = 0;
    expect(await failureOf(objects.put('a/0', piecesOf('abc'), 3))).toBe('PUT a/0: the answer is 503 SlowDown');
    expect(asked).toBe(1);
  });
});

describe('an answer that is not what was asked for is refused:', () => {
  test('one that is cut', async () => {
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
    const objects = await openS3Objects(settingsOf(server.port), LONG_MS);
    const reading = objects.read('a/0').then((content) => new Response(content).text());
    expect(await failureOf(reading)).toStartWith('GET a/0: ');
  });

  test('one that stops in the middle', async () => {
    const objects = await openStub(() => {
      const body = new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('abc')) });
      return new Response(body, { headers: { 'content-length': '6' } });
    }, SHORT_MS);
    expect(await failureOf(textOf(objects))).toBe('GET a/0: TimeoutError');
  });

  test('one without the range', async () => {
    const objects = await openStub(() => new Response('abcdef'));
    expect(await failureOf(textOf(objects, { start: 1, end: 2 }))).toBe('GET a/0: the answer is 200');
  });

  test('one with another range', async () => {
    const objects = await openStub(() => new Response('abcdef', { status: 206 }));
    expect(await failureOf(textOf(objects, { start: 1, end: 2 }))).toBe('GET a/0: received 6 of 2 bytes');
  });
});

describe('the storage waits as long as', () => {
  test('whoever sends content takes for it', async () => {
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

  test('whoever reads takes for it', async () => {
    const objects = await openStub(() => new Response('a'.repeat(5_000_000)), SHORT_MS);
    let length = 0;
    let pauses = 0;
    for await (const chunk of await objects.read('a/0')) {
      length += chunk.length;
      pauses += 1;
      if (pauses < 3) await Bun.sleep(1.5 * SHORT_MS);
    }
    expect(length).toBe(5_000_000);
  });
});

test('whoever goes away, before the first byte or after it, ends the request', async () => {
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

test('a storage that takes nothing is offered little, however much there is to send', async () => {
  const objects = await openStub(() => new Promise(() => {}), SHORT_MS);
  const pieces = Array<string>(2_000).fill('a'.repeat(100_000));
  const content = piecesOf(...pieces);
  expect(await failureOf(objects.put('a/0', content, 200_000_000))).toBe('PUT a/0: TimeoutError');
  expect(content.taken).toBeLessThan(300);
  expect(content.is_closed).toBe(true);
});

describe('a start fails by one sentence, without the secret,', () => {
  const problemOf = async (settings: S3Settings, idle_ms = LONG_MS) => {
    const { message } = await rejectionOf(StartError, openS3Objects(settings, idle_ms));
    expect(message).not.toContain(SECRET);
    expect(message).toEndWith('start the storage, make the bucket, or correct the settings S3_….');
    return message;
  };

  test('where nobody answers', async () => {
    const settings = settingsOf(findFreePort());
    const said = `The bucket "bucket" at ${settings.endpoint} cannot be used (ConnectionRefused): `;
    expect(await problemOf(settings)).toStartWith(said);
  });

  test('where somebody is silent', async () => {
    const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
    stub = new AsyncDisposableStack();
    stub.defer(() => server.stop(true));
    expect(await problemOf(settingsOf(server.port), SHORT_MS)).toContain('(TimeoutError)');
  });

  if (TEST_S3 !== undefined) {
    test('where the bucket, the key or the secret is another', async () => {
      const { parsed } = await openTestBucket();
      expect(await problemOf({ ...parsed, bucket: 'no-such-bucket' })).toContain('(NoSuchBucket)');
      expect(await problemOf({ ...parsed, secret_access_key: SECRET })).toContain('(SignatureDoesNotMatch)');
      expect(await problemOf({ ...parsed, access_key_id: 'nobody' })).toMatch(
        /\((InvalidAccessKeyId|AccessDenied|SignatureDoesNotMatch)\)/,
      );
      expect(await problemOf({ ...parsed, region: 'elsewhere' })).toContain('(AuthorizationHeaderMalformed)');
    });
  }
});

test('where the bucket is told by the host, requests go there', async () => {
  const asked: string[] = [];
  const server = Bun.serve({
    port: 0,
    fetch(request) {
      asked.push(`${request.method} ${request.headers.get('host')} ${new URL(request.url).pathname}`);
      return isList(request) ? new Response(EMPTY_LIST) : new Response('abc');
    },
  });
  stub = new AsyncDisposableStack();
  stub.defer(() => server.stop(true));
  const settings = { ...settingsOf(server.port ?? 0), endpoint: `http://localhost:${server.port}`, prefix: 'in/' };
  const objects = await openS3Objects({ ...settings, is_virtual_hosted: true }, LONG_MS);
  expect(await textOf(objects)).toBe('abc');
  const host = `bucket.localhost:${server.port}`;
  expect(asked).toEqual([`GET ${host} /`, `GET ${host} /in/a/0`]);
});
