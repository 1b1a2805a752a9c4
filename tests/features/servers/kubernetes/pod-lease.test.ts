import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { openKubernetes } from '../../../../src/features/servers/runtimes/kubernetes/cluster.ts';
import {
  ClusterClient,
  ClusterRefusal,
  ClusterUnreachable,
} from '../../../../src/features/servers/runtimes/kubernetes/cluster-client.ts';
import { openCredentials } from '../../../../src/features/servers/runtimes/kubernetes/credentials.ts';
import { openKubernetesRuntime } from '../../../../src/features/servers/runtimes/kubernetes/kubernetes-runtime.ts';
import { createPackedBuilds } from '../../../../src/features/servers/runtimes/kubernetes/packed-builds.ts';
import { openPodPort, type PodPort } from '../../../../src/features/servers/runtimes/kubernetes/pod-port.ts';
import { openPodApi, type PodApi } from '../../../support/kubernetes/kubernetes-api.ts';
import { rejectionOf } from '../../../support/refusal.ts';
import { IMMEDIATE_MS, waitFor } from '../../../support/wait.ts';

const API_URL = 'http://127.0.0.1:8080';

describe('kubernetes: the process with the lease of the pods', () => {
  let stack = new AsyncDisposableStack();
  let api: PodApi;
  let pod_port: PodPort;
  beforeEach(async () => {
    api = stack.use(await openPodApi());
    pod_port = stack.use(
      openPodPort({ pods_host: '127.0.0.1', port: 0, key: 'a key', openBuild: async () => undefined }),
    );
  });
  afterEach(async () => {
    await stack.disposeAsync();
    stack = new AsyncDisposableStack();
  });

  const clientOf = (time_left: number) =>
    new ClusterClient(openCredentials(api.kubeconfig), { mayAct: () => true, timeLeft: () => time_left });

  async function openRuntime(ended: AbortSignal, signal: AbortSignal) {
    const runtime = await openKubernetesRuntime({
      client: clientOf(Number.POSITIVE_INFINITY),
      namespace: 'games',
      machine_id: crypto.randomUUID(),
      own_image: 'muster:test',
      pod_port,
      images: undefined,
      builds: createPackedBuilds(),
      lease: { mayAct: () => !ended.aborted, timeLeft: () => Number.POSITIVE_INFINITY, ended },
      signal,
      has_agones: false,
      api_url: API_URL,
      api_url_for_pods: API_URL,
      disk_max: undefined,
      onLost() {},
    });
    stack.use(runtime);
    return runtime;
  }

  const openCluster = () =>
    openKubernetes({
      settings: {
        kubeconfig: api.kubeconfig,
        namespace: undefined,
        own_image: 'muster:test',
        pods_host: '127.0.0.1',
        port: 0,
        listen_address: undefined,
        registry_host: undefined,
        has_agones: false,
      },
      directory: '/nowhere',
      disk_max: undefined,
      api_url: API_URL,
      events: { emit() {} },
    });

  test('closes its connections to pods as soon as its lease has ended, although its runtime is still open', async () => {
    const ending = new AbortController();
    await openRuntime(ending.signal, ending.signal);
    const { socket: url, token } = pod_port.addressOf('one');
    const headers = { authorization: `Bearer ${token}` };
    const socket = new WebSocket(url, { headers } as unknown as string[]);
    await waitFor(() => pod_port.connectionOf('one'), 'the pod to be connected');
    ending.abort();
    await waitFor(() => socket.readyState === WebSocket.CLOSED, 'the connection of the pod to be closed', IMMEDIATE_MS);
  });

  test('waits for no list of the pods once it is to stop', async () => {
    api.are_lists_held = true;
    const opened: string[] = [];
    const [lease, going_on, stopping] = [new AbortController(), new AbortController(), new AbortController()];
    stopping.abort();
    const waiting = openRuntime(lease.signal, going_on.signal).then(() => opened.push('the one that goes on'));
    await openRuntime(lease.signal, stopping.signal);
    opened.push('the one that stops');
    going_on.abort();
    await waiting;
    expect(opened).toEqual(['the one that stops', 'the one that goes on']);
  });

  test('does not wait to know its cluster once it is to stop', async () => {
    api.namespaces = 'held';
    const stopping = new AbortController();
    const reading = rejectionOf(ClusterUnreachable, openCluster().readId(stopping.signal));
    stopping.abort();
    // The deadline of the call would be a TimeoutError.
    const { cause } = await reading;
    expect(cause instanceof Error && cause.name).toBe('AbortError');
  });

  test('names the right that it needs to know its cluster', async () => {
    api.namespaces = 'refused';
    const { message } = await rejectionOf(ClusterRefusal, openCluster().readId(new AbortController().signal));
    expect(message).toEndWith(': allow Muster to get its namespace (docs/kubernetes.md, Rights)');
  });

  test('begins no change of the cluster while it offers the pods to other processes', async () => {
    const body = { metadata: { name: 'late' } };
    const call = clientOf(0).call({ method: 'POST', path: '/api/v1/namespaces/games/pods', body });
    expect((await rejectionOf(ClusterUnreachable, call)).message).toBe(
      'another process may have the pods of the cluster by now',
    );
  });

  test('gives up a change of the cluster when another process may have the pods', async () => {
    /** Lets a process create a pod, and returns the call, which waits for an answer. */
    const create = async (name: string, time_left: number) => {
      const holding = api.holdCreation();
      const body = { metadata: { name } };
      const calling = clientOf(time_left).call({ method: 'POST', path: '/api/v1/namespaces/games/pods', body });
      // It may fail before the test looks at it.
      calling.catch(() => {});
      return { calling, answer: (await holding).answer };
    };
    const first = await create('one', Number.POSITIVE_INFINITY);
    const second = await create('two', 500);
    await rejectionOf(ClusterUnreachable, second.calling);
    // The deadline that every call has would have ended the first one before.
    first.answer();
    expect((await first.calling).status).toBe(201);
    second.answer();
  });
});
