import { join } from 'node:path';
import { Type } from '@sinclair/typebox';
import { StartError } from '../../../../platform/errors.ts';
import type { Events } from '../../../../platform/events.ts';
import { toUrlHost } from '../../../../platform/networks.ts';
import type { UnpackedBuild } from '../../../builds/builds.ts';
import type { DiskUse, Runtime } from '../runtime.ts';
import { BuildReads } from './build-reads.ts';
import { ClusterClient, ClusterRefusal } from './cluster-client.ts';
import { ClusterImages, IMAGE_KINDS, isImage } from './cluster-images.ts';
import { openCredentials } from './credentials.ts';
import { ImageRegistry } from './image-registry.ts';
import { FETCHED_KINDS, kindsOfPods, openKubernetesRuntime, type PodLease } from './kubernetes-runtime.ts';
import { createPackedBuilds } from './packed-builds.ts';
import { PackedImages } from './packed-images.ts';
import { openPodPort } from './pod-port.ts';

/** The settings of a cluster that runs game servers. */
export interface KubernetesSettings {
  /** The path of a kubeconfig, or `in-cluster`. */
  kubeconfig: string;
  /** Undefined for the namespace of the credentials. */
  namespace: string | undefined;
  /** Muster's own image. */
  own_image: string;
  /** The address at which pods reach the processes that share the cluster. */
  pods_host: string;
  /** The port at which pods reach these processes. */
  port: number;
  /** The address at which this process listens for pods; undefined for all. */
  listen_address: string | undefined;
  /** The name by which nodes reach Muster as a registry of images; undefined if they cannot. */
  registry_host: string | undefined;
  /** Whether Agones makes the pods. */
  has_agones: boolean;
}

interface KubernetesOptions {
  settings: KubernetesSettings;
  /** The directory of what this process keeps for its pods. */
  directory: string;
  disk_max: DiskUse | undefined;
  /** The address of the service in the variables of servers. */
  api_url: string;
  events: Events;
}

/** A cluster that runs game servers as pods. */
export interface Cluster extends Pick<Runtime, 'kinds' | 'why_missing'> {
  /** Its name for operators. */
  name: string;
  /** Returns the id of the namespace of the pods, which no other cluster has. */
  readId(signal: AbortSignal): Promise<string>;
  /** Opens the port to which pods connect. Throws StartError if it is in use. */
  openPort(options: ClusterPortOptions): ClusterPort;
}

interface ClusterPortOptions {
  /** The key of the pods' tokens, the same for all processes that share the cluster. */
  key: string;
  /** Returns the build of a server that starts; undefined if there is no such server, or if it has started. */
  findBuild(server_id: string): Promise<UnpackedBuild | undefined>;
  /** Returns a build that a server on any machine has, until that has ended; undefined if there is none. */
  findBuildInUse(build_id: string): Promise<UnpackedBuild | undefined>;
}

interface ClusterRuntimeOptions {
  machine_id: string;
  lease: PodLease;
  /** Ends the wait for the first list of the pods. */
  signal: AbortSignal;
}

/** The port of this process for pods. Any process has the builds; one at a time has the pods. */
export interface ClusterPort extends AsyncDisposable {
  /** Opens the runtime of the pods of a machine, as long as this process has them. Disposing of it leaves the pods. */
  openRuntime(options: ClusterRuntimeOptions): Promise<Runtime & AsyncDisposable>;
  /** Answers the requests of nodes for images; returns undefined for others. Undefined if nodes cannot pull images. */
  answerNodes: AnswerNodes | undefined;
  /** Returns how many builds and layers pods and nodes read from this process, and how many they may. */
  countReads: BuildReads['count'];
}

export type AnswerNodes = ImageRegistry['answer'];

/** Why a service with a cluster runs no other builds, for their developers. */
const ONLY_IN_PODS =
  'its servers are pods of Kubernetes, and MUSTER_KUBERNETES_REGISTRY is not set, so their nodes cannot pull images; pack the server as an archive or a script, or tell the operator';

const FORBIDDEN = 403;

const Namespace = Type.Object({ metadata: Type.Object({ uid: Type.String() }) });

/** Reads the credentials of a cluster. Throws StartError. The cluster need not answer yet. */
export function openKubernetes({ settings, directory, disk_max, api_url, events }: KubernetesOptions): Cluster {
  const { kubeconfig, pods_host, port, listen_address, own_image, registry_host, has_agones } = settings;
  const credentials = openCredentials(kubeconfig);
  const namespace = settings.namespace ?? credentials.namespace;
  if (namespace === undefined) {
    throw new StartError(
      `MUSTER_KUBERNETES is "${kubeconfig}", which names no namespace: set MUSTER_KUBERNETES_NAMESPACE.`,
    );
  }
  const url = new URL(api_url);
  url.hostname = toUrlHost(pods_host);

  /** Returns how nodes pull images from this process; undefined if they cannot. */
  function openImages({ key, findBuildInUse }: ClusterPortOptions, reads: BuildReads) {
    if (registry_host === undefined) return undefined;
    // Another release may replace the file, but not the program that runs.
    const executable = `/proc/${process.pid}/exe`;
    const packed = new PackedImages({ executable, directory: join(directory, 'image-program'), reads });
    const registry = new ImageRegistry({
      key,
      async openImage(build_id) {
        const build = await findBuildInUse(build_id);
        return build && isImage(build) ? await packed.pack(build) : undefined;
      },
      onFailed: (cause) => events.emit({ event: 'runtime_failed', step: 'image', kinds: [...IMAGE_KINDS], cause }),
      onServed: (served) => events.emit({ event: 'request_served', ray_id: Bun.randomUUIDv7(), ...served }),
      reads,
    });
    const images = new ClusterImages({ host: registry_host, registry, packed });
    return { registry, images, answerNodes: answerAt(registry_host, registry) };
  }

  return {
    kinds: kindsOfPods({ has_images: registry_host !== undefined }),
    why_missing: ONLY_IN_PODS,
    name: `namespace ${namespace}`,
    async readId(signal) {
      const request = { method: 'GET', path: `/api/v1/namespaces/${namespace}`, signal } as const;
      try {
        return (await new ClusterClient(credentials).read(Namespace, request)).metadata.uid;
      } catch (cause) {
        if (!(cause instanceof ClusterRefusal && cause.status === FORBIDDEN)) throw cause;
        const advice = 'allow Muster to get its namespace (docs/kubernetes.md, Rights)';
        throw new ClusterRefusal(FORBIDDEN, `${cause.message}: ${advice}`);
      }
    },
    openPort(options) {
      const { key, findBuild } = options;
      const reads = new BuildReads();
      const builds = createPackedBuilds(reads);
      const image_parts = openImages(options, reads);
      const pod_port = openPodPort({
        pods_host,
        port,
        listen_address,
        key,
        registry: image_parts?.registry,
        async openBuild(server_id) {
          const build = await findBuild(server_id);
          return build && !isImage(build) ? builds.packOf(build.directory) : undefined;
        },
        onFailed: (cause) => events.emit({ event: 'runtime_failed', step: 'build', kinds: [...FETCHED_KINDS], cause }),
        reads,
      });
      return {
        answerNodes: image_parts?.answerNodes,
        countReads: () => reads.count(),
        openRuntime: ({ machine_id, lease, signal }) =>
          openKubernetesRuntime({
            client: new ClusterClient(credentials, lease),
            namespace,
            pod_port,
            builds,
            images: image_parts?.images,
            lease,
            signal,
            has_agones,
            machine_id,
            own_image,
            disk_max,
            api_url,
            api_url_for_pods: url.origin,
            onLost: (cause) => events.emit({ event: 'cluster_unavailable', cause }),
          }),
        [Symbol.asyncDispose]: () => pod_port[Symbol.asyncDispose](),
      };
    },
  };
}

/** Answers as a registry only at its own name, because sites may have the same paths. */
function answerAt(registry_host: string, registry: ImageRegistry): AnswerNodes {
  const { hostname } = new URL(`http://${registry_host}`);
  return (request, server) => {
    // Most requests are not for it, so their address is not parsed.
    if (!request.url.includes('/v2') || new URL(request.url).hostname !== hostname) return undefined;
    return registry.answer(request, server);
  };
}
