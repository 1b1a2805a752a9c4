import { setTimeout as sleep } from 'node:timers/promises';
import { S3Client } from 'bun';
import { ServiceError } from '../errors.ts';
import { orAborted } from '../timeouts.ts';
import { createIdleTimeout, type IdleTimeout } from './idle-timeout.ts';
import { MissingObject } from './objects.ts';
import type { S3Settings } from './s3-settings.ts';

/** Maximum number of attempts of a repeatable request, if the storage is busy or cannot be reached. */
const ATTEMPTS_MAX = 3;
const PAUSE_MS = 200;
/** What is read of the answer to a refused request. The code of the error is at its start. */
const REFUSAL_BYTES_MAX = 65_536;
/** Lifetime of a presigned address, which is used at once. */
const ADDRESS_LIFETIME_S = 300;

interface S3Request extends Pick<RequestInit, 'headers' | 'body'> {
  /** The statuses that are not a failure. */
  wanted: number[];
  /** Limits the wait for the answer. The caller may go on using it for the body. */
  idle: IdleTimeout;
}

interface ListOptions {
  prefix: string;
  maxKeys: number;
  continuationToken?: string;
  signal?: AbortSignal | undefined;
}

export interface S3Requests {
  send(method: 'GET' | 'PUT' | 'DELETE', key: string, request: S3Request): Promise<Response>;
  /** Lists a page of the objects with a prefix. `signal` ends the wait for it. */
  list(options: ListOptions): ReturnType<S3Client['list']>;
}

/**
 * Creates requests to a bucket, each with a time limit. They fail with OBJECTS_UNAVAILABLE, whose cause names the request
 * and the problem, but no address and no secret.
 */
export function createS3Requests(settings: S3Settings, idle_ms: number): S3Requests {
  const lister = createClient(settings, settings.access_key_id);
  // Bun writes the key id into addresses unescaped, where a ":" has to be escaped.
  const signer = createClient(settings, encodeURIComponent(settings.access_key_id));

  return {
    async send(method, key, { wanted, idle, ...request }) {
      const address = signer.presign(key, { method, expiresIn: ADDRESS_LIFETIME_S });
      const { signal } = idle;
      idle.start();
      try {
        const response = await fetch(address, { method, signal, redirect: 'manual', ...request });
        if (wanted.includes(response.status)) return response;
        const code = /<Code>(\w{1,64})<\/Code>/.exec(await readStart(response))?.[1];
        if (code === 'NoSuchKey') throw new MissingObject(`${method} ${key}: the answer is ${response.status} ${code}`);
        const is_temporary = response.status === 429 || response.status >= 500;
        throw new S3Failure(`the answer is ${response.status}${code ? ` ${code}` : ''}`, is_temporary);
      } catch (error) {
        throw unavailable(`${method} ${key}`, error);
      } finally {
        idle.stop();
      }
    },
    async list({ signal, ...options }) {
      // Bun's client cannot abort a request, so a late one is abandoned.
      const idle = createIdleTimeout(idle_ms);
      const abandoned = signal ? AbortSignal.any([idle.signal, signal]) : idle.signal;
      idle.start();
      try {
        return await orAborted(lister.list(options), abandoned);
      } catch (error) {
        throw unavailable(`LIST ${options.prefix}`, error);
      } finally {
        idle.stop();
      }
    },
  };
}

/** Returns the start of an answer's body, and ends the request. */
async function readStart({ body }: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body ?? []) {
    pieces.push(piece);
    length += piece.length;
    if (length >= REFUSAL_BYTES_MAX) break;
  }
  return Buffer.concat(pieces).toString();
}

function createClient({ bucket, region, ...settings }: S3Settings, accessKeyId: string): S3Client {
  const endpoint = new URL(settings.endpoint);
  if (settings.is_virtual_hosted) endpoint.hostname = `${bucket}.${endpoint.hostname}`;
  return new S3Client({
    endpoint: endpoint.origin,
    bucket,
    region,
    accessKeyId,
    secretAccessKey: settings.secret_access_key,
    virtualHostedStyle: settings.is_virtual_hosted,
  });
}

/** An error of the storage, or the reason why it could not be reached. */
export class S3Failure extends Error {
  /** Whether a repetition may succeed. */
  readonly is_temporary: boolean;

  constructor(message: string, is_temporary: boolean) {
    super(message);
    this.is_temporary = is_temporary;
  }
}

/** Wraps a failure. Takes only the code of `fetch`'s errors, because they contain the signed address. */
export function unavailable(request: string, error: unknown): ServiceError {
  if (error instanceof MissingObject) return new ServiceError('OBJECTS_UNAVAILABLE', {}, { cause: error });
  const { message, is_temporary } =
    error instanceof S3Failure ? error : new S3Failure(reasonOf(error), !isTimeout(error));
  return new ServiceError('OBJECTS_UNAVAILABLE', {}, { cause: new S3Failure(`${request}: ${message}`, is_temporary) });
}

/** Returns whether a request timed out. Such a request is not repeated, because it has taken long enough. */
function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'the request failed';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}

/** Retries work after a temporary failure. */
export async function retryTemporary<Value>(work: () => Promise<Value>): Promise<Value> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const is_temporary =
        error instanceof ServiceError && error.cause instanceof S3Failure && error.cause.is_temporary;
      if (attempt === ATTEMPTS_MAX || !is_temporary) throw error;
      await sleep(PAUSE_MS * attempt);
    }
  }
}
