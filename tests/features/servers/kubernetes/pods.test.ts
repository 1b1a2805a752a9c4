import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test';
import { ClusterClient } from '../../../../src/features/servers/runtimes/kubernetes/cluster-client.ts';
import { openCredentials } from '../../../../src/features/servers/runtimes/kubernetes/credentials.ts';
import type { PodConnection } from '../../../../src/features/servers/runtimes/kubernetes/pod-connection.ts';
import { IMAGE_ANNOTATION, nameOf } from '../../../../src/features/servers/runtimes/kubernetes/pod-manifest.ts';
import type { Pod } from '../../../../src/features/servers/runtimes/kubernetes/pod-shapes.ts';
import { PodStates } from '../../../../src/features/servers/runtimes/kubernetes/pod-states.ts';
import { Pods } from '../../../../src/features/servers/runtimes/kubernetes/pods.ts';
import { openPodApi, type PodApi } from '../../../support/kubernetes/kubernetes-api.ts';
import { waitFor } from '../../../support/wait.ts';

type Entry = readonly [name: string, version: number];

/** How the API server answers the next list or watch. */
interface Script {
  lists: (Entry[] | { status: number })[];
  watches: (object[] | { status: number; after_ms?: number } | { cut_after_ms: number })[];
}

const podOf = ([name, version]: Entry) => ({
  metadata: { name, uid: `uid of ${name}`, resourceVersion: String(version) },
});
const event = (type: string, entry: Entry) => ({ type, object: podOf(entry) });
const bookmark = (version: number) => ({
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: String(version) } },
});
const expired = { type: 'ERROR', object: { code: 410, message: 'too old resource version' } };

/** A watch without events, which a load balancer cuts. */
function cutAfter(cut_after_ms: number): Response {
  const body = new ReadableStream<Uint8Array>({
    async start(stream) {
      stream.enqueue(Buffer.from(`${JSON.stringify(bookmark(3))}\n`));
      await Bun.sleep(cut_after_ms);
      stream.error();
    },
  });
  return new Response(body);
}

describe("kubernetes: the copy of a cluster's pods", () => {
  let stack = new DisposableStack();
  afterEach(() => {
    stack.dispose();
    stack = new DisposableStack();
  });

  /** Opens the copy over an API server that follows a script and records the requests. */
  function open({ lists, watches }: Script) {
    const requests: string[] = [];
    const losses: string[] = [];
    let ended = false;
    const answerList = (url: URL): Response => {
      const next = lists.shift() ?? [];
      if ('status' in next) return Response.json({ message: 'it cannot' }, { status: next.status });
      const [first, ...others] = url.searchParams.get('limit') === '500' ? next : [];
      // A page has one pod.
      const is_last = others.length === 0;
      if (!is_last) lists.unshift(others);
      const version = Math.max(0, ...next.map(([, one]) => one));
      const metadata = { resourceVersion: String(version), ...(!is_last && { continue: `after ${first?.[0]}` }) };
      return Response.json({ metadata, items: first ? [podOf(first)] : [] });
    };
    const answerWatch = async (): Promise<Response> => {
      const next = watches.shift();
      if (next && 'after_ms' in next) await Bun.sleep(next.after_ms ?? 0);
      if (next && 'status' in next) return Response.json({ message: 'it cannot' }, { status: next.status });
      if (next && 'cut_after_ms' in next) return cutAfter(next.cut_after_ms);
      const lines = (next ?? []).map((one) => `${JSON.stringify(one)}\n`).join('');
      const body = new ReadableStream<Uint8Array>({
        async start(stream) {
          if (lines !== '') stream.enqueue(Buffer.from(lines));
          // The last watch stays open.
          while (watches.length === 0 && !ended) await Bun.sleep(20);
          stream.close();
        },
      });
      return new Response(body);
    };
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      idleTimeout: 0,
      fetch(request) {
        const url = new URL(request.url);
        const { searchParams } = url;
        const is_watch = searchParams.get('watch') === '1';
        const next = searchParams.get('continue');
        requests.push(is_watch ? `watch ${searchParams.get('resourceVersion')}` : `list${next ? ` ${next}` : ''}`);
        return is_watch ? answerWatch() : answerList(url);
      },
    });
    const stopping = new AbortController();
    stack.defer(() => {
      ended = true;
      stopping.abort();
      void server.stop(true);
    });
    const url = `http://127.0.0.1:${server.port}`;
    const pods = new Pods({
      client: new ClusterClient({ namespace: 'games', access: () => ({ url, token: undefined, tls: {} }) }),
      namespace: 'games',
      selector: 'a=b',
      onChange() {},
      signal: stopping.signal,
      onLost: (cause) => void losses.push(String(cause)),
    });
    const names = () => pods.list().map(({ metadata }) => metadata.name);
    return {
      names,
      requests,
      losses,
      countLost: () => losses.length,
      find: (name: string) => pods.find(name)?.metadata.resourceVersion,
    };
  }

  /** Waits until the API server got these requests, and no others. */
  const waitForRequests = async ({ requests }: { requests: string[] }, expected: string[]) => {
    await waitFor(() => requests.length >= expected.length, `the request ${expected.at(-1)}`);
    expect(requests).toEqual(expected);
  };

  test('is read page by page, then watched from the version of the list', async () => {
    const copy = open({
      lists: [
        [
          ['a', 3],
          ['b', 5],
          ['c', 4],
        ],
      ],
      watches: [],
    });
    await waitForRequests(copy, ['list', 'list after a', 'list after b', 'watch 4']);
    expect(copy.names()).toEqual(['a', 'b', 'c']);
  });

  test('follows what is added, changed and deleted, and goes on from the last bookmark', async () => {
    const events = [event('ADDED', ['b', 4]), event('MODIFIED', ['a', 5]), event('DELETED', ['b', 6]), bookmark(9)];
    const copy = open({ lists: [[['a', 3]]], watches: [events, []] });
    await waitForRequests(copy, ['list', 'watch 3', 'watch 9']);
    expect([copy.names(), copy.find('a'), copy.countLost()]).toEqual([['a'], '5', 0]);
  });

  test.each([
    ['says so in an event', [[expired], []]],
    ['refuses the watch', [{ status: 410 }, []]],
  ])('is listed anew, silently, if the API server has forgotten the version and %s', async (_, watches) => {
    const copy = open({ lists: [[['a', 3]], [['b', 9]]], watches });
    await waitForRequests(copy, ['list', 'watch 3', 'list', 'watch 9']);
    expect([copy.names(), copy.countLost()]).toEqual([['b'], 0]);
  });

  test.each([403, 500, 504])('is listed anew after the status %d, which is reported once', async (status) => {
    const copy = open({ lists: [[['a', 3]], { status }, [['b', 9]]], watches: [{ status }, []] });
    await waitForRequests(copy, ['list', 'watch 3', 'list', 'list', 'watch 9']);
    expect([copy.names(), copy.countLost()]).toEqual([['b'], 1]);
  });

  test('reports an API server that forgets the version and then goes away', async () => {
    const away = { status: 503 };
    const copy = open({ lists: [[['a', 3]], away, away, [['b', 9]]], watches: [[expired], []] });
    await waitForRequests(copy, ['list', 'watch 3', 'list', 'list', 'list', 'watch 9']);
    expect([copy.names(), copy.countLost()]).toEqual([['b'], 1]);
  });

  test('says once that the API server cannot be used, and why', async () => {
    const copy = open({ lists: [[['a', 3]], [['b', 9]]], watches: [{ status: 503 }, []] });
    await waitForRequests(copy, ['list', 'watch 3', 'list', 'watch 9']);
    expect(copy.losses).toEqual(['Error: the API server of the cluster cannot be used now: it cannot']);
  });

  test('is listed anew if a watch ends at once without an event, which is reported once', async () => {
    const copy = open({ lists: [[['a', 3]], [['b', 9]]], watches: [[], []] });
    await waitForRequests(copy, ['list', 'watch 3', 'list', 'watch 9']);
    expect([copy.names(), copy.countLost()]).toEqual([['b'], 1]);
  });

  test('is listed anew, silently and at once, after each watch that worked and was then cut', async () => {
    const cut = { cut_after_ms: 1_100 };
    const copy = open({ lists: [[['a', 3]], [['a', 3]], [['b', 9]]], watches: [cut, cut, []] });
    await waitForRequests(copy, ['list', 'watch 3', 'list', 'watch 3', 'list', 'watch 9']);
    expect([copy.names(), copy.countLost()]).toEqual([['b'], 0]);
  });

  test('takes a watch that is refused late for no watch that worked', async () => {
    const refused = { status: 503, after_ms: 1_100 };
    const copy = open({ lists: [[['a', 3]], [['a', 3]], [['b', 9]]], watches: [refused, refused, []] });
    await waitForRequests(copy, ['list', 'watch 3', 'list', 'watch 3', 'list', 'watch 9']);
    expect([copy.names(), copy.countLost()]).toEqual([['b'], 1]);
  });

  test('forgets what it knew once the API server was set back to an earlier state', async () => {
    const copy = open({
      lists: [
        [
          ['a', 30],
          ['b', 40],
        ],
        [['a', 7]],
      ],
      watches: [[event('MODIFIED', ['a', 50])], { status: 504 }, []],
    });
    await waitForRequests(copy, ['list', 'list after a', 'watch 40', 'watch 50', 'list', 'watch 7']);
    expect([copy.names(), copy.find('a')]).toEqual([['a'], '7']);
  });
});

describe('kubernetes: a pod of a cluster that several processes change', () => {
  let api: PodApi;
  let stopping: AbortController;
  beforeEach(async () => {
    api = await openPodApi();
    stopping = new AbortController();
  });
  afterEach(async () => {
    stopping.abort();
    await api[Symbol.asyncDispose]();
  });

  function openPods(): Pods {
    const client = new ClusterClient(openCredentials(api.kubeconfig));
    const quiet = { onChange() {}, onLost() {}, signal: stopping.signal };
    return new Pods({ client, namespace: 'games', selector: 'a=b', ...quiet });
  }

  const manifest = () => ({ metadata: { name: 'one', finalizers: ['here'] }, spec: {} });

  test('is removed, but not one of its name that another process has created since', async () => {
    const pods = openPods();
    await pods.create(manifest());
    await pods.remove('one', 'here');
    expect([...api.pods.keys()]).toEqual([]);
    await pods.create(manifest());
    // This process sees no changes any more.
    stopping.abort();
    await pods.stopped;
    stopping = new AbortController();
    const other = openPods();
    await other.read('one');
    await other.remove('one', 'here');
    await other.create(manifest());
    await pods.remove('one', 'here');
    const { finalizers, deletionTimestamp } = api.pods.get('one')?.metadata ?? {};
    expect([finalizers, deletionTimestamp]).toEqual([['here'], undefined]);
  });
});

test('kubernetes: a server is not given up before the cluster has answered once, however long that takes', async () => {
  const pods = { find: () => undefined, is_loaded: false };
  const pod_port = { connectionOf: () => undefined };
  const states = new PodStates({ pods, pod_port, addressOfNode: async () => undefined });
  const server_id = crypto.randomUUID();
  const server = { server_id, identity: { pod: nameOf(server_id) } };
  const now = spyOn(performance, 'now');
  try {
    for (const moment of [0, 3_600_000]) {
      now.mockReturnValue(moment);
      expect(await states.observe(server)).toEqual({ is: 'unreachable', for_ms: 0 });
    }
  } finally {
    now.mockRestore();
  }
});

test('kubernetes: how long a node has been lost is measured by this process, whatever the clock of the cluster says', async () => {
  const isReady = (status: 'True' | 'False', lastTransitionTime = '2026-01-02T03:04:05Z') => ({
    containerStatuses: [{ name: 'server', state: { running: {} } }],
    conditions: [{ type: 'Ready', status, lastTransitionTime }],
  });
  const pod = { metadata: { name: 'muster-1', uid: '1', resourceVersion: '1' }, spec: { nodeName: 'node1' } };
  let status = isReady('False');
  const pods = { find: (): Pod => ({ ...pod, status }), is_loaded: true };
  const pod_port = { connectionOf: () => undefined };
  const states = new PodStates({ pods, pod_port, addressOfNode: async () => '10.0.0.1' });
  const now = spyOn(performance, 'now');
  const observeAt = async (moment: number) => {
    now.mockReturnValue(moment);
    return await states.observe({ server_id: '1', identity: undefined });
  };
  try {
    expect(await observeAt(1_000)).toEqual({ is: 'unreachable', for_ms: 0 });
    expect(await observeAt(6_000)).toEqual({ is: 'unreachable', for_ms: 5_000 });
    status = isReady('True');
    expect(await observeAt(7_000)).toMatchObject({ is: 'running' });
    status = isReady('False');
    expect(await observeAt(8_000)).toEqual({ is: 'unreachable', for_ms: 0 });
    // It was back while nothing observed it, and is lost again.
    status = isReady('False', '2026-01-02T03:09:00Z');
    expect(await observeAt(300_000)).toEqual({ is: 'unreachable', for_ms: 0 });
    expect(await observeAt(301_000)).toEqual({ is: 'unreachable', for_ms: 1_000 });
  } finally {
    now.mockRestore();
  }
});

const PULLS: [
  whose: string,
  annotations: Record<string, string>,
  is_pending_after_s: number,
  has_ended_after_s: number,
][] = [
  [
    'of a build has five minutes, in which Muster may restart or unpack it',
    { [IMAGE_ANNOTATION]: 'docker_image' },
    290,
    301,
  ],
  ['of Muster has one minute', {}, 50, 61],
];
test.each(PULLS)('kubernetes: a pull that fails %s', async (_, annotations, is_pending_after_s, has_ended_after_s) => {
  const waiting = { reason: 'ErrImagePull', message: '503' };
  const pod: Pod = {
    metadata: { name: 'muster-1', uid: '1', resourceVersion: '1', annotations },
    spec: { nodeName: 'node1' },
    status: { containerStatuses: [{ name: 'server', state: { waiting } }] },
  };
  const pods = { find: () => pod, is_loaded: true };
  const pod_port = { connectionOf: () => undefined };
  const states = new PodStates({ pods, pod_port, addressOfNode: async () => undefined });
  const now = spyOn(performance, 'now');
  try {
    const observeAfter = async (seconds: number) => {
      now.mockReturnValue(1_000 * seconds);
      return (await states.observe({ server_id: '1', identity: undefined })).is;
    };
    const seen = [0, is_pending_after_s, has_ended_after_s].map(observeAfter);
    expect(await Promise.all(seen)).toEqual(['pending', 'pending', 'ended']);
  } finally {
    now.mockRestore();
  }
});

test('kubernetes: a server whose pod is connected can be stopped, also before its node says that it runs', async () => {
  const pod: Pod = {
    metadata: { name: 'muster-1', uid: '1', resourceVersion: '1' },
    spec: { nodeName: 'node1' },
    status: { containerStatuses: [{ name: 'server', state: { waiting: { reason: 'PodInitializing' } } }] },
  };
  let connection: { end: undefined } | undefined;
  const pod_port = { connectionOf: () => connection as PodConnection | undefined };
  const pods = { find: () => pod, is_loaded: true };
  const states = new PodStates({ pods, pod_port, addressOfNode: async () => '10.0.0.1' });
  const observe = () => states.observe({ server_id: '1', identity: undefined });
  expect(await observe()).toEqual({ is: 'pending', identity: expect.anything(), reason: expect.anything() });
  connection = { end: undefined };
  expect(await observe()).toMatchObject({ is: 'pending', can_stop: true });
});
