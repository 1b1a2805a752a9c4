import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { ClusterClient } from '../../../../src/features/servers/runtimes/kubernetes/cluster-client.ts';
import { openCredentials } from '../../../../src/features/servers/runtimes/kubernetes/credentials.ts';
import { openKubernetesRuntime } from '../../../../src/features/servers/runtimes/kubernetes/kubernetes-runtime.ts';
import { createPackedBuilds } from '../../../../src/features/servers/runtimes/kubernetes/packed-builds.ts';
import { PodUnreachable } from '../../../../src/features/servers/runtimes/kubernetes/pod-connection.ts';
import { nameOf } from '../../../../src/features/servers/runtimes/kubernetes/pod-manifest.ts';
import { openPodPort, type PodPort } from '../../../../src/features/servers/runtimes/kubernetes/pod-port.ts';
import type { Runtime, ServerHandle } from '../../../../src/features/servers/runtimes/runtime.ts';
import { openPodApi, type PodApi } from '../../../support/kubernetes/kubernetes-api.ts';
import { rejectionOf } from '../../../support/refusal.ts';
import { makeDataDirectory } from '../../../support/service.ts';
import { waitFor } from '../../../support/wait.ts';

const API_URL = 'http://127.0.0.1:8080';
const QUERY = { from: undefined, bytes_max: 8, backlog_bytes_max: 64 };
const piece = (text: string) => ({
  bytes: Buffer.from(text).toString('base64'),
  start: 0,
  skipped_bytes: 0,
  has_more: true,
  written: [],
});

describe('kubernetes: a hostile server that sends in the name of its pod', () => {
  let stack = new AsyncDisposableStack();
  let api: PodApi;
  let pod_port: PodPort;
  let runtime: Runtime;
  beforeEach(async () => {
    api = stack.use(await openPodApi());
    pod_port = stack.use(
      openPodPort({ pods_host: '127.0.0.1', port: 0, key: 'a key', openBuild: async () => undefined }),
    );
    runtime = stack.use(
      await openKubernetesRuntime({
        client: new ClusterClient(openCredentials(api.kubeconfig)),
        namespace: 'games',
        machine_id: crypto.randomUUID(),
        own_image: 'muster:test',
        pod_port,
        images: undefined,
        builds: createPackedBuilds(),
        has_agones: false,
        api_url: API_URL,
        api_url_for_pods: API_URL,
        disk_max: undefined,
        onLost() {},
      }),
    );
  });
  afterEach(async () => {
    await stack.disposeAsync();
    stack = new AsyncDisposableStack();
  });

  /** Starts a server whose pod runs, and answers each call with the same, or nothing. */
  async function start(result: unknown, { is_silent = false } = {}): Promise<ServerHandle> {
    const server_id = crypto.randomUUID();
    const directory = await makeDataDirectory();
    await Bun.write(join(directory, 'run.sh'), 'exit 0');
    await runtime.start({
      server_id,
      build_id: crypto.randomUUID(),
      build: { game_id: crypto.randomUUID(), kind: 'archive', sha256: undefined, directory, command: ['./run.sh'] },
      resources: { cpu: 100, memory: 64 },
      ports: {},
      arguments: [],
      environment: {},
    });
    api.setStatus(nameOf(server_id), { containerStatuses: [{ name: 'server', state: { running: {} } }] });
    const { socket: url, token } = pod_port.addressOf(server_id);
    const headers = { authorization: `Bearer ${token}` };
    const socket = new WebSocket(url, { headers } as unknown as string[]);
    socket.onmessage = ({ data }) => {
      if (!is_silent) socket.send(JSON.stringify({ answer: JSON.parse(String(data)).call, result }));
    };
    const connection = await waitFor(() => pod_port.connectionOf(server_id), 'its connection');
    // The port may have the connection before the socket knows that it is open.
    await waitFor(() => socket.readyState === WebSocket.OPEN, 'its socket to be open');
    socket.send(JSON.stringify({ state: { sizes: { std_out: 100, std_err: 100 } } }));
    await waitFor(() => connection.sizes.std_out === 100, 'its state');
    return { server_id, identity: { pod: nameOf(server_id) } };
  }

  test('is killed by the cluster if it says that it was killed and goes on', async () => {
    const server = await start({});
    const name = nameOf(server.server_id);
    const killing = runtime.kill([server]);
    await waitFor(() => api.pods.get(name)?.metadata.deletionTimestamp, 'its pod to be deleted');
    const terminated = { exitCode: 137 };
    api.setStatus(name, { containerStatuses: [{ name: 'server', state: { terminated } }] });
    expect(await killing).toEqual(new Set([server.server_id]));
  });

  test('has its output refused if a piece is longer than Muster asked for', async () => {
    const server = await start(piece('123456789'));
    await rejectionOf(PodUnreachable, runtime.readOutput(server, 'std_out', QUERY));
    await waitFor(() => pod_port.connectionOf(server.server_id) === undefined, 'its connection to be closed');
  });

  test.each([
    ['read', (server: ServerHandle) => rejectionOf(PodUnreachable, runtime.readOutput(server, 'std_out', QUERY))],
    ['usage', (server: ServerHandle) => runtime.readUsage?.([server])],
    ['stop', (server: ServerHandle) => runtime.stop(server)],
  ])('holds up others for two seconds if it does not answer: %s', async (_, call) => {
    const server = await start(undefined, { is_silent: true });
    const began = performance.now();
    await call(server);
    expect(performance.now() - began).toBeWithin(1_900, 5_000);
    await waitFor(() => pod_port.connectionOf(server.server_id) === undefined, 'its connection to be closed');
  });

  test('has more output only after a piece that is full', async () => {
    const server = await start(piece('1\n'));
    expect((await runtime.readOutput(server, 'std_out', QUERY)).has_more).toBe(false);
    const other = await start(piece('123456\n\n'));
    expect((await runtime.readOutput(other, 'std_out', QUERY)).has_more).toBe(true);
  });

  test.each([
    ['a fraction', { cpu_ms: 1.5 }],
    ['more than the database can add', { cpu_ms: 1e300 }],
    ['less than nothing', { cpu_ms: -1 }],
    ['memory that is none', { cpu_ms: 1, memory_bytes: 0.5 }],
  ])('has no usage if that is %s, and other servers have theirs', async (_, usage) => {
    const [server, other] = [await start(usage), await start({ cpu_ms: 7 })];
    expect(await runtime.readUsage?.([server, other])).toEqual(new Map([[other.server_id, { cpu_ms: 7 }]]));
  });
});
