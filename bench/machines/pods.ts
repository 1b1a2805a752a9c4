import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { UnpackedBuild } from '../../src/features/builds/builds.ts';
import { openKubernetesRuntime } from '../../src/features/servers/runtimes/kubernetes/kubernetes-runtime.ts';
import { createPackedBuilds } from '../../src/features/servers/runtimes/kubernetes/packed-builds.ts';
import { openPodPort } from '../../src/features/servers/runtimes/kubernetes/pod-port.ts';
import type { Runtime } from '../../src/features/servers/runtimes/runtime.ts';
import { forEachAtOnce } from '../../src/platform/pacing.ts';
import { IMAGE, type Lab, NAMESPACE, startLab } from '../../tests/support/kubernetes/kubernetes-lab.ts';
import { middleOf, printTable } from '../report.ts';

const CONCURRENCY = 16;
const POLL_MS = 50;
const WITHIN_MS = 300_000;
const RESOURCES = { cpu: 50, memory: 32 };

interface PodsOptions {
  repetitions: number;
  /** Pods of a turn. */
  pods: number;
}

/** Starts pods and returns how to remove them, once the cluster says that all of them run. */
type StartPods = (count: number) => Promise<() => Promise<void>>;

/**
 * Measures how many pods a second start on a real cluster on this machine, by Muster's runtime beside `kubectl run`: both with
 * the same image and resources. A pod of Muster also fetches its build and has Muster's first process.
 */
export async function measurePods(opened: AsyncDisposableStack, { repetitions, pods }: PodsOptions): Promise<void> {
  const lab = opened.use(await startLab());
  const ways: [name: string, start: StartPods][] = [
    ['kubectl run', (count) => startByKubectl(lab, count)],
    ['Muster', await openMuster(opened, lab)],
  ];
  const seconds = new Map<string, number[]>(ways.map(([name]) => [name, []]));
  // The first repetition warms up.
  for (let repetition = 0; repetition <= repetitions; repetition += 1) {
    for (const [name, start] of ways) {
      const started = performance.now();
      const remove = await start(pods);
      if (repetition > 0) seconds.get(name)?.push((performance.now() - started) / 1_000);
      await remove();
      await waitUntil(async () => (await countPods(lab)).all === 0);
    }
  }
  const medians = ways.map(([name]) => ({ name, median: middleOf(seconds.get(name) ?? []) }));
  const [bare] = medians;
  if (!bare) throw new Error('kubectl is measured');
  printTable(`${pods} pods on two nodes, ${CONCURRENCY} at a time, until all run; medians of ${repetitions} turns`, [
    ['', 'seconds', 'pods/s', 'of kubectl run'],
    ...medians.map(({ name, median }) => [
      name,
      median.toFixed(1),
      (pods / median).toFixed(2),
      `${(bare.median / median).toFixed(2)} ×`,
    ]),
  ]);
}

async function startByKubectl(lab: Lab, count: number): Promise<() => Promise<void>> {
  const numbers = `cpu=${RESOURCES.cpu}m,memory=${RESOURCES.memory + 96}Mi`;
  const names = Array.from({ length: count }, (_, index) => `bare-${index}`);
  const kubectl = ['kubectl', '--namespace', NAMESPACE];
  await forEachAtOnce(names, CONCURRENCY, async (name) => {
    const pod = ['run', name, '--image', IMAGE, '--restart=Never', '--requests', numbers, '--limits', numbers];
    await lab.run(...kubectl, ...pod, '--command', '--', '/bin/sleep', '600');
  });
  await waitUntil(async () => (await countPods(lab)).running === count);
  return async () => void (await lab.run(...kubectl, 'delete', 'pods', '--grace-period=0', '--force', ...names));
}

/** Opens Muster's runtime over a cluster. */
async function openMuster(opened: AsyncDisposableStack, lab: Lab): Promise<StartPods> {
  const build = await makeBuild(opened);
  const builds = createPackedBuilds();
  const openBuild = async () => builds.packOf(build.directory);
  const pod_port = opened.use(openPodPort({ pods_host: lab.host, port: 0, key: crypto.randomUUID(), openBuild }));
  const address = 'http://127.0.0.1:8080';
  const runtime = opened.use(
    await openKubernetesRuntime({
      client: lab.client,
      namespace: NAMESPACE,
      machine_id: crypto.randomUUID(),
      own_image: IMAGE,
      pod_port,
      images: undefined,
      builds,
      has_agones: false,
      api_url: address,
      api_url_for_pods: address,
      disk_max: undefined,
      onLost() {},
    }),
  );
  return (count) => startByMuster(runtime, build, count);
}

async function startByMuster(runtime: Runtime, build: UnpackedBuild, count: number): Promise<() => Promise<void>> {
  const servers = Array.from({ length: count }, () => ({ server_id: crypto.randomUUID(), identity: undefined }));
  await forEachAtOnce(servers, CONCURRENCY, async ({ server_id }) => {
    const build_id = crypto.randomUUID();
    const order = { server_id, build_id, build, resources: RESOURCES, ports: {}, arguments: [], environment: {} };
    await runtime.start(order);
  });
  await waitUntil(async () => [...(await runtime.observe(servers)).values()].every(({ is }) => is === 'running'));
  return async () => {
    await waitUntil(async () => (await runtime.kill(servers)).size === count);
    await forEachAtOnce(servers, CONCURRENCY, ({ server_id }) => runtime.remove(server_id));
  };
}

async function makeBuild(opened: AsyncDisposableStack): Promise<UnpackedBuild> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-bench-pods-'));
  opened.defer(() => rm(directory, { recursive: true, force: true }));
  await mkdir(join(directory, 'build'));
  await Bun.write(join(directory, 'build/run.sh'), 'exec sleep 600\n');
  await chmod(join(directory, 'build'), 0o755);
  return {
    game_id: crypto.randomUUID(),
    kind: 'archive',
    sha256: undefined,
    directory: join(directory, 'build'),
    command: ['/bin/sh', 'run.sh'],
  };
}

interface PodList {
  items: { status?: { phase?: string } }[];
}

async function countPods({ client }: Lab): Promise<{ all: number; running: number }> {
  const { text } = await client.call({ method: 'GET', path: `/api/v1/namespaces/${NAMESPACE}/pods` });
  const { items } = JSON.parse(text) as PodList;
  return { all: items.length, running: items.filter(({ status }) => status?.phase === 'Running').length };
}

async function waitUntil(isSo: () => Promise<boolean>): Promise<void> {
  for (const started = performance.now(); !(await isSo()); ) {
    if (performance.now() - started > WITHIN_MS) throw new Error('the pods took too long');
    await Bun.sleep(POLL_MS);
  }
}
