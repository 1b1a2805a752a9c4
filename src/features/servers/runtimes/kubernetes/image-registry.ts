import { createHmac } from 'node:crypto';
import { isSameSecret } from '../../../../platform/constant-time.ts';
import { awaitOpening } from './build-opening.ts';
import { BuildReads } from './build-reads.ts';
import type { ImageBlob, PackedImage } from './packed-images.ts';

/** Time in which an image is packed, and in which a node reads a piece of a layer. */
const IDLE_SECONDS = 120;
/** Time after which a node may ask again for an image that is not packed yet, or while too many are read. */
const RETRY_AFTER_SECONDS = 1;
const PATH =
  /^\/v2\/(?<build_id>[0-9a-f-]{36})\/(?<token>[0-9a-f]{64})\/(?<part>manifests|blobs)\/(?<digest>sha256:[0-9a-f]{64})$/;
const FROM = /^bytes=(\d{1,15})-$/;
const VERSION = { 'docker-distribution-api-version': 'registry/2.0' };

interface ImageRegistryOptions {
  /** The key of the tokens in the names of images, the same for all processes that share the cluster. */
  key: string;
  /** Returns the image of a build; undefined if it is no image, or all of its servers have ended. */
  openImage(build_id: string): Promise<PackedImage | undefined>;
  /** Reports an image that a node asked for, and that could not be read. */
  onFailed?(cause: unknown): void;
  /** Reports a request that was answered. */
  onServed?(served: ServedRequest): void;
  reads?: BuildReads | undefined;
  /** Time for which a request waits for its image. */
  open_within_ms?: number | undefined;
}

/** A request that was answered, without the token of its path. */
interface ServedRequest {
  method: string;
  route: string;
  status: number;
  duration_ms: number;
}

/** The part of Bun's server that sets how long the connection of a request may be silent. */
interface AnsweringServer {
  timeout(request: Request, seconds: number): void;
}

/**
 * A registry from which nodes pull the images of servers that start (the distribution specification of OCI, without
 * anything that lists or writes). The name of an image has a token, because nodes have no other credentials. An unknown
 * name and a wrong token look alike.
 */
export class ImageRegistry {
  readonly #reads: BuildReads;

  constructor(private readonly options: ImageRegistryOptions) {
    this.#reads = options.reads ?? new BuildReads();
  }

  /** Returns the name of the image of a build, without the registry. All servers of the build have the same. */
  nameOf(build_id: string): string {
    return `${build_id}/${this.#tokenOf(build_id)}`;
  }

  /** Answers a request to the registry; returns undefined for any other path. */
  answer(request: Request, server: AnsweringServer): Promise<Response> | undefined {
    const { pathname } = new URL(request.url);
    if (pathname !== '/v2' && !pathname.startsWith('/v2/')) return undefined;
    return this.#answerReported(request, pathname, server);
  }

  async #answerReported(request: Request, path: string, server: AnsweringServer): Promise<Response> {
    const started = performance.now();
    const response = await this.#answer(request, path, server);
    const { method } = request;
    const { status } = response;
    const { part } = PATH.exec(path)?.groups ?? {};
    const route = part === undefined ? '/v2' : `/v2/${part}`;
    this.options.onServed?.({ method, route, status, duration_ms: Math.round(performance.now() - started) });
    return response;
  }

  async #answer(request: Request, path: string, server: AnsweringServer): Promise<Response> {
    if (request.method !== 'GET' && request.method !== 'HEAD') return notFound();
    if (path === '/v2/') return Response.json({}, { headers: VERSION });
    const { build_id, token = '', part, digest } = PATH.exec(path)?.groups ?? {};
    if (build_id === undefined || !isSameSecret(token, this.#tokenOf(build_id))) return notFound();
    server.timeout(request, IDLE_SECONDS);
    const { openImage, open_within_ms, onFailed } = this.options;
    const opening = await awaitOpening(openImage(build_id), { within_ms: open_within_ms, onFailed });
    if (opening.is === 'absent') return notFound();
    if (opening.is === 'late') return unavailable('the image is being prepared');
    if (opening.is === 'failed') return unavailable('the image cannot be read');
    const { manifest, blobs } = opening.build;
    const blob = (part === 'manifests' ? [manifest] : blobs).find((one) => one.digest === digest);
    return blob ? this.#send(request, blob, server) : notFound();
  }

  #send(request: Request, blob: ImageBlob, server: AnsweringServer): Response {
    const [, from_text] = FROM.exec(request.headers.get('range') ?? '') ?? [];
    const from = Number(from_text ?? 0);
    const common = { ...VERSION, 'content-type': blob.type, 'docker-content-digest': blob.digest };
    if (from > 0 && from >= blob.bytes) {
      return new Response(null, { status: 416, headers: { ...common, 'content-range': `bytes */${blob.bytes}` } });
    }
    const content_range = `bytes ${from}-${blob.bytes - 1}/${blob.bytes}`;
    const headers = {
      ...common,
      'content-length': String(blob.bytes - from),
      ...(from_text !== undefined && { 'content-range': content_range }),
    };
    const status = from_text === undefined ? 200 : 206;
    if (request.method === 'HEAD') return new Response(null, { status, headers });
    const { content } = blob;
    if (typeof content === 'string') return new Response(content.slice(from), { status, headers });
    const onSkipped = () => server.timeout(request, IDLE_SECONDS);
    const stream = this.#reads.open(content, { from, onSkipped });
    return stream ? new Response(stream, { status, headers }) : tooMany();
  }

  #tokenOf(build_id: string): string {
    return createHmac('sha256', this.options.key).update(`image/${build_id}`).digest('hex');
  }
}

const problem = (status: number, code: string, message: string, headers = {}) =>
  Response.json({ errors: [{ code, message }] }, { status, headers: { ...VERSION, ...headers } });
const notFound = () => problem(404, 'NAME_UNKNOWN', 'there is no such image');
const RETRY_AFTER = { 'retry-after': String(RETRY_AFTER_SECONDS) };
const unavailable = (message: string) => problem(503, 'UNAVAILABLE', message, RETRY_AFTER);
const tooMany = () => problem(429, 'TOOMANYREQUESTS', 'too many layers are being read', RETRY_AFTER);
