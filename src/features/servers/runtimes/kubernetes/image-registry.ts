import { createHmac } from 'node:crypto';
import { isSameSecret } from '../../../../platform/constant-time.ts';
import { streamOf } from '../../../../platform/objects/objects.ts';
import { createByteShare } from '../../../../platform/pacing.ts';
import type { ImageBlob, PackedImage } from './packed-images.ts';

/** Layers that are read at a time. Each has a few buffers. */
const READS_MAX = 256;
/** Time in which an image is packed, and in which a node reads a piece of a layer. */
const IDLE_SECONDS = 120;
const BYTES_EACH_TURN = 4 * 1_024 ** 2;
const KEY_CHARACTERS = 32;
const PATH =
  /^\/v2\/(?<machine_id>[0-9a-f-]{36})\/(?<key>[0-9a-f]{32})\/(?<token>[0-9a-f]{64})\/(?<part>manifests|blobs)\/(?<digest>sha256:[0-9a-f]{64})$/;
const FROM = /^bytes=(\d{1,15})-$/;
const VERSION = { 'docker-distribution-api-version': 'registry/2.0' };

interface ImageRegistryOptions {
  machine_id: string;
  /** The key of the tokens in the names of images. */
  secret: string;
  /** Asks the registry of another machine; returns undefined if there is none. Undefined if this is the only one. */
  askOther?(machine_id: string, request: Request): Promise<Response | undefined>;
  /** Reports an image that a node asked for, and that could not be read. */
  onFailed?(cause: unknown): void;
}

/** Returns the image that servers start from which wait for their nodes, by its key; undefined if there is none. */
type OpenImage = (key: string) => Promise<PackedImage | undefined>;

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
  readonly #takeShare = createByteShare(BYTES_EACH_TURN);
  #reads = 0;
  #openImage: OpenImage | undefined;

  constructor(private readonly options: ImageRegistryOptions) {}

  /** Returns the name of the image of a build, without the registry. All servers of the build have the same. */
  nameOf(directory: string): string {
    const key = keyOf(directory);
    return `${this.options.machine_id}/${key}/${this.#tokenOf(key)}`;
  }

  /** Sets what has the images. */
  serve(openImage: OpenImage): void {
    this.#openImage = openImage;
  }

  /** Answers a request to the registry; returns undefined for any other path. */
  answer(request: Request, server: AnsweringServer): Promise<Response> | undefined {
    const { pathname } = new URL(request.url);
    if (pathname !== '/v2' && !pathname.startsWith('/v2/')) return undefined;
    return this.#answer(request, pathname, server).catch((cause: unknown) => {
      this.options.onFailed?.(cause);
      return problem(503, 'UNAVAILABLE', 'the image cannot be read');
    });
  }

  async #answer(request: Request, path: string, server: AnsweringServer): Promise<Response> {
    if (request.method !== 'GET' && request.method !== 'HEAD') return notFound();
    if (path === '/v2/') return Response.json({}, { headers: VERSION });
    const { machine_id, key = '', token = '', part, digest } = PATH.exec(path)?.groups ?? {};
    if (machine_id === undefined) return notFound();
    server.timeout(request, IDLE_SECONDS);
    if (machine_id !== this.options.machine_id) return await this.#askOther(machine_id, request);
    const image = isSameSecret(token, this.#tokenOf(key)) ? await this.#openImage?.(key) : undefined;
    const blobs = image && (part === 'manifests' ? [image.manifest] : image.blobs);
    const blob = blobs?.find((one) => one.digest === digest);
    return blob ? this.#send(request, blob) : notFound();
  }

  async #askOther(machine_id: string, request: Request): Promise<Response> {
    if (this.#reads >= READS_MAX) return tooMany();
    const answer = await this.options.askOther?.(machine_id, request);
    if (!answer) return notFound();
    if (!answer.body) return answer;
    const { status, headers } = answer;
    return new Response(streamOf(this.#read(answer.body)), { status, headers });
  }

  #send(request: Request, blob: ImageBlob): Response {
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
    const content = blob.open(from);
    if (typeof content === 'string') return new Response(content, { status, headers });
    if (this.#reads >= READS_MAX) return tooMany();
    return new Response(streamOf(this.#read(content)), { status, headers });
  }

  /** Yields a layer. Reads of many nodes leave the service its turns. */
  async *#read(content: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    this.#reads += 1;
    try {
      for await (const chunk of content) {
        await this.#takeShare(chunk.length);
        yield chunk;
      }
    } finally {
      this.#reads -= 1;
    }
  }

  #tokenOf(key: string): string {
    return createHmac('sha256', this.options.secret).update(`image/${key}`).digest('hex');
  }
}

/** Returns the key of the build in a directory, which has one content only. */
export function keyOf(directory: string): string {
  return new Bun.CryptoHasher('sha256').update(directory).digest('hex').slice(0, KEY_CHARACTERS);
}

const problem = (status: number, code: string, message: string, headers = {}) =>
  Response.json({ errors: [{ code, message }] }, { status, headers: { ...VERSION, ...headers } });
const notFound = () => problem(404, 'NAME_UNKNOWN', 'there is no such image');
const tooMany = () => problem(429, 'TOOMANYREQUESTS', 'too many layers are being read', { 'retry-after': '1' });
