import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * A bucket at an HTTP server with the few calls of S3 that Muster makes, without signatures. Its objects are files, so
 * that clients that do not read keep no copy in memory.
 */
export interface SmallS3 extends AsyncDisposable {
  /** Settings of a program that keeps its objects there. */
  settings: Record<string, string>;
  /** Requests whose answers are not read completely yet. */
  readonly under_way: number;
  /** Holds up reads of the objects that it has now, until the returned function is called. */
  holdReads(): () => void;
  /** Holds up writes of objects until the returned function is called. */
  holdWrites(): () => void;
  /** Sends the first byte of each object alone, like a slow network. */
  splitReads(): void;
}

export async function openSmallS3(): Promise<SmallS3> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-s3-'));
  /** The size of each object by its key. */
  const objects = new Map<string, number>();
  let released = Promise.resolve();
  let held = new Set<string>();
  let writes_released = Promise.resolve();
  let are_reads_split = false;
  const fileOf = (key: string) => Bun.file(join(directory, Bun.SHA256.hash(key, 'hex')));
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const url = new URL(request.url);
      const key = decodeURIComponent(url.pathname).replace(/^\/bucket\/?/, '');
      if (request.method === 'PUT') await writes_released;
      if (request.method === 'PUT') objects.set(key, await Bun.write(fileOf(key), await request.bytes()));
      if (request.method === 'DELETE') objects.delete(key);
      if (request.method !== 'GET') return new Response();
      if (url.searchParams.has('list-type')) return list(objects, url.searchParams.get('prefix') ?? '');
      if (held.has(key)) await released;
      if (!objects.has(key)) return new Response('<Code>NoSuchKey</Code>', { status: 404 });
      const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get('range') ?? '');
      if (!range && are_reads_split) return inTwoPieces(await fileOf(key).bytes());
      if (!range) return new Response(fileOf(key));
      return new Response(fileOf(key).slice(Number(range[1]), Number(range[2]) + 1), { status: 206 });
    },
  });
  return {
    settings: {
      S3_ENDPOINT: `http://127.0.0.1:${server.port}`,
      S3_BUCKET: 'bucket',
      S3_ACCESS_KEY_ID: 'key',
      S3_SECRET_ACCESS_KEY: 'secret',
    },
    get under_way() {
      return server.pendingRequests;
    },
    splitReads() {
      are_reads_split = true;
    },
    holdReads() {
      const { promise, resolve } = Promise.withResolvers<void>();
      released = promise;
      held = new Set(objects.keys());
      return resolve;
    },
    holdWrites() {
      const { promise, resolve } = Promise.withResolvers<void>();
      writes_released = promise;
      return resolve;
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function list(objects: Map<string, number>, prefix: string): Response {
  const contents = [...objects]
    .filter(([key]) => key.startsWith(prefix))
    .map(([key, size]) => `<Contents><Key>${key}</Key><Size>${size}</Size></Contents>`);
  const xml = `<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>${contents.join('')}</ListBucketResult>`;
  return new Response(xml, { headers: { 'content-type': 'application/xml' } });
}

/** Long enough for a client to read what was sent before. */
const PAUSE_MS = 20;

function inTwoPieces(content: Uint8Array): Response {
  const body = new ReadableStream({
    async start(pieces) {
      pieces.enqueue(content.subarray(0, 1));
      await Bun.sleep(PAUSE_MS);
      pieces.enqueue(content.subarray(1));
      pieces.close();
    },
  });
  return new Response(body, { headers: { 'content-length': String(content.length) } });
}
