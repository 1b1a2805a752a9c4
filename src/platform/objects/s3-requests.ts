import { setTimeout as sleep } from 'node:timers/promises';
import { S3Client } from 'bun';
import { ServiceError } from '../errors.ts';
import { createPatience, type Patience } from './patience.ts';
import type { S3Settings } from './s3-settings.ts';

/** Requests that may be repeated are, when the storage is busy or cannot be reached. */
const TRIES_MAX = 3;
const PAUSE_MS = 200;
/** How long an address is good for, that is used at once. */
const ADDRESS_LIFETIME_S = 300;

interface S3Request extends Pick<RequestInit, 'headers' | 'body'> {
  /** The statuses that are no failure. */
  wanted: number[];
  /** Watches the wait for the answer, and may go on to watch its body. */
  patience: Patience;
}

export interface S3Requests {
  send(method: 'GET' | 'PUT' | 'DELETE', key: string, request: S3Request): Promise<Response>;
  /** The objects whose keys begin so, as one answer lists them, and how to go on. */
  list(options: { prefix: string; maxKeys: number; continuationToken?: string }): ReturnType<S3Client['list']>;
}

/**
 * Requests to a bucket, each with an end. They fail with OBJECTS_UNAVAILABLE, whose cause names the request and what was
 * wrong, and neither an address nor a secret.
 */
export function createS3Requests(settings: S3Settings, patience_ms: number): S3Requests {
  const lister = createClient(settings, settings.access_key_id);
  // Bun writes it into addresses as it is, where a ":" has to be escaped.
  const signer = createClient(settings, encodeURIComponent(settings.access_key_id));

  return {
    async send(method, key, { wanted, patience, ...request }) {
      const address = signer.presign(key, { method, expiresIn: ADDRESS_LIFETIME_S });
      const { signal } = patience;
      patience.begin();
      try {
        const response = await fetch(address, { method, signal, redirect: 'manual', ...request });
        if (wanted.includes(response.status)) return response;
        const code = /<Code>(\w{1,64})<\/Code>/.exec(await response.text())?.[1];
        const is_passing = response.status === 429 || response.status >= 500;
        throw new S3Failure(`the answer is ${response.status}${code ? ` ${code}` : ''}`, is_passing);
      } catch (error) {
        throw unavailable(`${method} ${key}`, error);
      } finally {
        patience.end();
      }
    },
    async list(options) {
      // The client cannot be told to give up: a request that is late is left to itself.
      const patience = createPatience(patience_ms);
      const late = Promise.withResolvers<never>();
      patience.signal.addEventListener('abort', () => late.reject(patience.signal.reason));
      patience.begin();
      try {
        return await Promise.race([lister.list(options), late.promise]);
      } catch (error) {
        throw unavailable(`LIST ${options.prefix}`, error);
      } finally {
        patience.end();
      }
    },
  };
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

/** What the storage said, or why it could not be asked. */
export class S3Failure extends Error {
  /** Whether it is worth asking again. */
  readonly is_passing: boolean;

  constructor(message: string, is_passing: boolean) {
    super(message);
    this.is_passing = is_passing;
  }
}

/** Failures of `fetch` hold the address with its signature: of others than our own, only the code is taken over. */
export function unavailable(request: string, error: unknown): ServiceError {
  const { message, is_passing } =
    error instanceof S3Failure ? error : new S3Failure(reasonOf(error), !isTimeout(error));
  return new ServiceError('OBJECTS_UNAVAILABLE', {}, { cause: new S3Failure(`${request}: ${message}`, is_passing) });
}

/** Whoever was silent for so long is not asked again. */
function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'it failed';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}

/** Does again what fails only for the moment. */
export async function repeat<Value>(work: () => Promise<Value>): Promise<Value> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      const is_passing = error instanceof ServiceError && error.cause instanceof S3Failure && error.cause.is_passing;
      if (tries === TRIES_MAX || !is_passing) throw error;
      await sleep(PAUSE_MS * tries);
    }
  }
}
