import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificate } from '../network/tls.ts';

const NAME = 'api-server';
const NAMESPACE = 'games';
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;

interface StoredPod {
  metadata: { name: string; uid: string; resourceVersion: string; finalizers?: string[]; deletionTimestamp?: string };
  spec: { containers: { ports?: { hostPort: number }[] }[] };
  status?: object;
}

/** A call that waits for the test. */
interface HeldCall {
  /** Whether the caller has given it up. */
  isGivenUp(): boolean;
  /** Answers it as it would have been answered. */
  answer(): void;
}

/** An API server that keeps pods, for tests without a cluster. It has no nodes: a test says what happens to its pods. */
export interface PodApi extends AsyncDisposable {
  kubeconfig: string;
  pods: ReadonlyMap<string, StoredPod>;
  /** Sets the status of a pod. */
  setStatus(name: string, status: object): void;
  /** Holds the next creation of a pod. Resolves once there is one. */
  holdCreation(): Promise<HeldCall>;
  /** Lets reads of the namespace be refused, or wait until the caller gives them up. */
  namespaces: 'answered' | 'refused' | 'held';
  /** Lets lists of pods wait until the caller gives them up. */
  are_lists_held: boolean;
}

/** Opens such an API server. */
export async function openPodApi(): Promise<PodApi> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-pod-api-'));
  const kubeconfig = join(directory, 'kubeconfig');
  const { certificate, key } = await makeCertificate([NAME]);
  const pods = new Map<string, StoredPod>();
  const watches = new Set<ReadableStreamDefaultController<Uint8Array>>();
  let version = 1;
  let onCreation: ((call: HeldCall) => void) | undefined;

  function put(pod: StoredPod, type: 'ADDED' | 'MODIFIED' | 'DELETED'): StoredPod {
    version += 1;
    pod.metadata.resourceVersion = String(version);
    if (type === 'DELETED') pods.delete(pod.metadata.name);
    else pods.set(pod.metadata.name, pod);
    for (const watch of watches) watch.enqueue(Buffer.from(`${JSON.stringify({ type, object: pod })}\n`));
    return pod;
  }

  function openWatch(): Response {
    let own: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start(watch) {
        own = watch;
        watches.add(watch);
        const metadata = { resourceVersion: String(version) };
        watch.enqueue(Buffer.from(`${JSON.stringify({ type: 'BOOKMARK', object: { metadata } })}\n`));
      },
      cancel() {
        if (own) watches.delete(own);
      },
    });
    return new Response(body);
  }

  async function create(request: Request): Promise<Response> {
    const pod: StoredPod = await request.json();
    const hold = onCreation;
    onCreation = undefined;
    if (hold) {
      const answer = Promise.withResolvers<void>();
      hold({ isGivenUp: () => request.signal.aborted, answer: answer.resolve });
      await answer.promise;
    }
    if (pods.has(pod.metadata.name)) return refuse(409);
    pod.metadata.uid = crypto.randomUUID();
    return Response.json(put(pod, 'ADDED'), { status: 201 });
  }

  async function change(request: Request, name: string): Promise<Response> {
    const pod = pods.get(name);
    if (!pod) return refuse(404);
    if (request.method === 'GET') return Response.json(pod);
    const body = await request.json();
    const uid = body.preconditions?.uid ?? body.metadata?.uid;
    if (uid !== undefined && uid !== pod.metadata.uid) return refuse(409);
    if (request.method === 'DELETE') pod.metadata.deletionTimestamp = new Date().toISOString();
    else pod.metadata.finalizers = [];
    const is_gone = pod.metadata.finalizers?.length === 0;
    return Response.json(put(pod, is_gone ? 'DELETED' : 'MODIFIED'));
  }

  async function answer(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === `/api/v1/namespaces/${NAMESPACE}`) {
      if (api.namespaces === 'held') return await holdForever();
      return api.namespaces === 'refused' ? refuse(403) : Response.json({ metadata: { uid: NAMESPACE } });
    }
    if (pathname === PODS && request.method === 'POST') return await create(request);
    if (pathname === PODS && searchParams.get('watch') === '1') return openWatch();
    if (pathname === PODS && api.are_lists_held) return await holdForever();
    if (pathname === PODS) {
      return Response.json({ metadata: { resourceVersion: String(version) }, items: [...pods.values()] });
    }
    return pathname.startsWith(`${PODS}/`) ? await change(request, pathname.slice(PODS.length + 1)) : refuse(403);
  }

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    tls: { cert: certificate, key },
    fetch: answer,
  });
  const cluster = {
    server: `https://127.0.0.1:${server.port}`,
    'tls-server-name': NAME,
    'certificate-authority-data': Buffer.from(certificate).toString('base64'),
  };
  const config = {
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'one', user: 'me', namespace: NAMESPACE } }],
    clusters: [{ name: 'one', cluster }],
    users: [{ name: 'me', user: { token: 'a token' } }],
  };
  await Bun.write(kubeconfig, JSON.stringify(config));

  const api: PodApi = {
    kubeconfig,
    pods,
    namespaces: 'answered',
    are_lists_held: false,
    setStatus(name, status) {
      const pod = pods.get(name);
      if (!pod) throw new Error(`there is no pod ${name}`);
      put({ ...pod, status }, 'MODIFIED');
    },
    holdCreation() {
      const { promise, resolve } = Promise.withResolvers<HeldCall>();
      onCreation = resolve;
      return promise;
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true);
      await rm(directory, { recursive: true });
    },
  };
  return api;
}

function refuse(status: number): Response {
  return Response.json({ message: `it refuses with ${status}` }, { status });
}

function holdForever(): Promise<never> {
  return new Promise(() => {});
}
