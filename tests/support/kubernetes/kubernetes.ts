import { expect } from 'bun:test';
import { join } from 'node:path';
import type { ClusterRequest } from '../../../src/features/servers/runtimes/kubernetes/cluster-client.ts';
import { ClusterImages } from '../../../src/features/servers/runtimes/kubernetes/cluster-images.ts';
import { ImageRegistry } from '../../../src/features/servers/runtimes/kubernetes/image-registry.ts';
import {
  type KubernetesRuntimeOptions,
  openKubernetesRuntime,
} from '../../../src/features/servers/runtimes/kubernetes/kubernetes-runtime.ts';
import { createPackedBuilds } from '../../../src/features/servers/runtimes/kubernetes/packed-builds.ts';
import { PackedImages } from '../../../src/features/servers/runtimes/kubernetes/packed-images.ts';
import { nameOf } from '../../../src/features/servers/runtimes/kubernetes/pod-manifest.ts';
import { openPodPort, type PodPort } from '../../../src/features/servers/runtimes/kubernetes/pod-port.ts';
import { findFreePort } from '../network/test-ports.ts';
import { EXECUTABLE } from '../program.ts';
import { makeImage } from '../runtimes/containers.ts';
import type { RuntimeKind } from '../runtimes/runtimes.ts';
import { IMAGE, type Lab, NAMESPACE } from './kubernetes-lab.ts';

export const API_URL = 'http://127.0.0.1:8080';

export interface KubernetesKind extends RuntimeKind, AsyncDisposable {
  machine_id: string;
  /** Closes the port for pods and opens it anew, as a restart of the service does. */
  restartPort(): Promise<void>;
}

/** The runtime of a cluster that is started later, as the suite of runtimes opens it. One machine for all directories. */
export function kubernetesRuntime(
  lab: () => Lab,
  { registry_host, ...changes }: Partial<KubernetesRuntimeOptions> & { registry_host?: string } = {},
): KubernetesKind {
  const machine_id = crypto.randomUUID();
  const key = crypto.randomUUID();
  let packed: PackedImages | undefined;
  const registry = new ImageRegistry({
    key,
    openImage: async (build_id) =>
      await packed?.pack({ directory: directories.get(build_id) ?? '', game_id: build_id }),
  });
  const runtimes: AsyncDisposable[] = [];
  let pod_port: PodPort | undefined;
  let port = 0;
  const builds = createPackedBuilds();
  /** The builds by their ids and by those of their servers, which a service reads from its database. */
  const directories = new Map<string, string>();

  function openPort(): PodPort {
    const openBuild = async (server_id: string) => builds.packOf(directories.get(server_id) ?? '');
    const opened = openPodPort({ pods_host: lab().host, port, key, registry, openBuild });
    port = Number(new URL(opened.addressOf('').build).port);
    return opened;
  }

  return {
    machine_id,
    name: 'kubernetes',
    get host() {
      return expect.stringMatching(lab().node_address);
    },
    signals: 3,
    resources: { cpu: 250, memory: 64 },
    async open(directory) {
      pod_port ??= openPort();
      const host = registry_host ?? `${lab().host}:${port}`;
      await letNodesPull(lab(), host);
      packed ??= new PackedImages({ executable: EXECUTABLE ?? '', directory: join(directory, 'image-program') });
      const runtime = await openKubernetesRuntime({
        client: lab().client,
        namespace: NAMESPACE,
        machine_id,
        own_image: IMAGE,
        pod_port,
        images: new ClusterImages({ host, registry, packed }),
        builds,
        has_agones: false,
        api_url: API_URL,
        api_url_for_pods: `http://${lab().host}:8080`,
        disk_max: undefined,
        onLost() {},
        ...changes,
      });
      runtimes.push(runtime);
      return {
        ...runtime,
        async start(order) {
          for (const id of [order.server_id, order.build_id]) directories.set(id, order.build.directory);
          return await runtime.start(order);
        },
      };
    },
    async restartPort() {
      await pod_port?.[Symbol.asyncDispose]();
      pod_port = openPort();
    },
    async [Symbol.asyncDispose]() {
      for (const runtime of runtimes) await runtime[Symbol.asyncDispose]();
      await pod_port?.[Symbol.asyncDispose]();
    },
  };
}

/** The runtime of a cluster whose builds are images. */
export function kubernetesImages(lab: () => Lab, changes: { registry_host?: string } = {}): KubernetesKind {
  const kind = kubernetesRuntime(lab, changes);
  return Object.assign(kind, { name: 'kubernetes, images', makeBuild: makeImage });
}

/** Lets the nodes of a lab pull images from a service, which has no TLS. */
export async function letNodesPull(lab: Lab, host: string): Promise<void> {
  await lab.run('registry', host);
}

/** The settings of a service whose servers are pods of a lab. */
export const clusterSettings = (lab: Lab) => ({
  MUSTER_HOST: '0.0.0.0',
  MUSTER_KUBERNETES: lab.kubeconfig,
  MUSTER_KUBERNETES_IMAGE: IMAGE,
  MUSTER_KUBERNETES_HOST: lab.host,
  MUSTER_KUBERNETES_PORT: String(findFreePort()),
});

/** What the tests look at of a pod. */
interface InspectedPod {
  metadata: { uid: string; deletionTimestamp?: string };
  spec: { nodeName: string };
}

const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
const pathOf = (server_id: string) => `${PODS}/${nameOf(server_id)}`;

/** Returns the pod of a server; undefined if there is none. */
export async function inspectPod({ client }: Lab, server_id: string): Promise<InspectedPod | undefined> {
  const request: ClusterRequest = { method: 'GET', path: pathOf(server_id), expected: [404] };
  const { status, text } = await client.call(request);
  return status === 404 ? undefined : JSON.parse(text);
}

/** Returns the names of all pods. */
export async function listPods({ client }: Lab): Promise<string[]> {
  const { text } = await client.call({ method: 'GET', path: PODS });
  const { items } = JSON.parse(text) as { items: { metadata: { name: string } }[] };
  return items.map(({ metadata }) => metadata.name);
}

/** Deletes the pod of a server, as its operator does. */
export async function deletePod({ client }: Lab, server_id: string): Promise<void> {
  await client.call({ method: 'DELETE', path: pathOf(server_id) });
}
