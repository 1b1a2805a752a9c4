import { afterAll, afterEach, beforeEach } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client, ClientOptions, WatchOptions } from '../../src/client/client.ts';
import type { Timing } from '../../src/client/timing.ts';
import type { Refusal } from '../../src/client/wire.ts';
import { readClient } from '../../src/platform/client-file.ts';
import { openTcpProxy, type TcpProxy } from './network/tcp-proxy.ts';
import type { TestService } from './service.ts';
import { waitFor } from './wait.ts';

/** A body of a view. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape.
type Body = any;

/** What a watcher has received. */
export interface Watcher {
  bodies: Body[];
  errors: Refusal[];
  stop(): void;
  /** Returns the first body that matches, after those that were returned before. */
  next(condition?: (body: Body) => boolean): Promise<Body>;
  /** Waits for the refusal of the subscription. */
  refusal(): Promise<Refusal>;
}

/** Short pauses, so that tests need not wait. */
export const QUICK: Partial<Timing> = { retry_ms: 20, retry_max_ms: 200 };

const directory = await mkdtemp(join(tmpdir(), 'muster-client-'));
/** The client as the service serves it. */
const CLIENT_FILE = join(directory, 'client.mjs');
await Bun.write(CLIENT_FILE, await readClient());
export const { connect }: typeof import('../../src/client/client.ts') = await import(CLIENT_FILE);
afterAll(() => rm(directory, { recursive: true, force: true }));

/** Opens clients through a proxy that a test can cut. Each test has a proxy of its own, and its clients end with it. */
export function shareClientProxy(muster: Pick<TestService, 'config'>) {
  let proxy: TcpProxy;
  let clients: Client[] = [];
  beforeEach(async () => {
    const { hostname, port } = new URL(muster.config.public_url);
    proxy = await openTcpProxy({ host: hostname, port: Number(port) });
  });
  afterEach(async () => {
    for (const client of clients) client.close();
    clients = [];
    await proxy[Symbol.asyncDispose]();
  });
  return {
    get proxy() {
      return proxy;
    },
    open(options: Partial<ClientOptions> = {}): Client {
      const client = connect({ url: `http://127.0.0.1:${proxy.port}`, timing: QUICK, ...options });
      clients.push(client);
      return client;
    },
  };
}

/** Watches a path, and keeps what it receives. */
export function watchWith(client: Client, path: string, options: WatchOptions = {}): Watcher {
  const bodies: Body[] = [];
  const errors: Refusal[] = [];
  let returned_count = 0;
  const stop = client.watch<Body>(path, (body) => void bodies.push(body), {
    onError: (error) => void errors.push(error),
    ...options,
  });
  return {
    bodies,
    errors,
    stop,
    async next(condition = () => true) {
      const found = await waitFor(() => {
        if (errors.length > 0) throw new Error(`refused with ${JSON.stringify(errors)}`);
        const index = bodies.findIndex((body, number) => number >= returned_count && condition(body));
        return index < 0 ? undefined : { index };
      }, 'a body');
      returned_count = found.index + 1;
      return bodies[found.index];
    },
    refusal: () => waitFor(() => errors[0], 'a refusal'),
  };
}
