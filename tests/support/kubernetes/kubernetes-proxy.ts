import { parse } from 'yaml';
import { type Access, openCredentials } from '../../../src/features/servers/runtimes/kubernetes/credentials.ts';
import { makeCertificate } from '../network/tls.ts';
import type { Lab } from './kubernetes-lab.ts';

/** The name in the certificate of the proxy. */
const NAME = 'api-proxy';

/** A call of the API server that is held. */
export interface CallToHold {
  method: 'POST' | 'PATCH' | 'DELETE';
  /** Whether the API server gets the call, so that only its answer is lost. */
  is_done: boolean;
}

/** A proxy in front of an API server, at which a test can hold a call, or cut the API server off. */
export interface ApiProxy extends AsyncDisposable {
  /** A kubeconfig that leads through it. */
  kubeconfig: string;
  /** Holds the next such call forever. Resolves once it is held. */
  hold(call: CallToHold): Promise<void>;
  /** Ends all calls, and answers no other until `heal`. */
  cut(): void;
  heal(): void;
  /** Returns the uids of the pods with a name that were created through it. */
  createdPods(name: string): string[];
}

/** Opens a proxy to the API server of a lab. Its kubeconfig lies beside that of the lab. */
export async function openApiProxy(lab: Lab): Promise<ApiProxy> {
  const { access } = openCredentials(lab.kubeconfig);
  const { certificate, key } = await makeCertificate([NAME]);
  const created: { name: string; uid: string }[] = [];
  let awaited: (CallToHold & { onHeld(): void }) | undefined;
  let cutting = new AbortController();

  async function answer(request: Request): Promise<Response> {
    if (cutting.signal.aborted) return await new Promise(() => {});
    const held = awaited?.method === request.method ? awaited : undefined;
    if (held) awaited = undefined;
    if (held && !held.is_done) return await holdForever(held);
    const response = await forward(request, access(), cutting.signal);
    const { status } = response;
    const headers = { 'content-type': response.headers.get('content-type') ?? 'application/json' };
    // The events of a watch are passed on one by one.
    if (request.method === 'GET') return new Response(response.body, { status, headers });
    const text = await response.text();
    if (request.method === 'POST' && status === 201) created.push(JSON.parse(text).metadata);
    return held ? await holdForever(held) : new Response(text, { status, headers });
  }

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    tls: { cert: certificate, key },
    fetch: answer,
    error: () => new Response('the API server does not answer\n', { status: 503 }),
  });
  const kubeconfig = `${lab.kubeconfig}-${server.port}`;
  const config = parse(await Bun.file(lab.kubeconfig).text());
  for (const one of config.clusters) {
    one.cluster = {
      server: `https://127.0.0.1:${server.port}`,
      'tls-server-name': NAME,
      'certificate-authority-data': Buffer.from(certificate).toString('base64'),
    };
  }
  await Bun.write(kubeconfig, JSON.stringify(config));
  return {
    kubeconfig,
    hold(call) {
      const { promise, resolve } = Promise.withResolvers<void>();
      awaited = { ...call, onHeld: resolve };
      return promise;
    },
    cut: () => cutting.abort(),
    heal() {
      cutting = new AbortController();
    },
    createdPods: (name) => created.filter((pod) => pod.name === name).map(({ uid }) => uid),
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

async function forward(request: Request, { url, tls }: Access, cut: AbortSignal): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const headers = { accept: 'application/json' } as Record<string, string>;
  for (const name of ['authorization', 'content-type']) {
    const value = request.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  const body = request.method === 'GET' ? null : await request.text();
  const { method } = request;
  return await fetch(`${url}${pathname}${search}`, {
    method,
    headers,
    body: body || null,
    signal: AbortSignal.any([request.signal, cut]),
    tls,
    timeout: false,
  });
}

function holdForever({ onHeld }: { onHeld(): void }): Promise<never> {
  onHeld();
  return new Promise(() => {});
}
