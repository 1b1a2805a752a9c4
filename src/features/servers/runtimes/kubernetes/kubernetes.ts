import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../../../../platform/errors.ts';
import type { Events } from '../../../../platform/events.ts';
import type { DiskUse, Runtime } from '../runtime.ts';
import { ApiClient } from './api-client.ts';
import { ClusterImages, IMAGE_KINDS } from './cluster-images.ts';
import { openCredentials } from './credentials.ts';
import { ImageRegistry } from './image-registry.ts';
import { openKubernetesRuntime } from './kubernetes-runtime.ts';
import { OtherRegistries } from './other-registries.ts';
import { PackedImages } from './packed-images.ts';
import { openPodPort } from './pod-port.ts';

const KEY_BYTES = 32;

/** The settings of a cluster that runs game servers. */
export interface KubernetesSettings {
  /** The path of a kubeconfig, or `in-cluster`. */
  kubeconfig: string;
  /** Undefined for the namespace of the credentials. */
  namespace: string | undefined;
  /** Muster's own image. */
  image: string;
  /** The address at which pods reach this process. */
  host: string;
  /** The port at which they do. */
  port: number;
  /** The name by which nodes reach Muster as a registry of images; undefined if they cannot. */
  registry: string | undefined;
  /** Whether Agones makes the pods. */
  has_agones: boolean;
}

interface KubernetesOptions {
  settings: KubernetesSettings;
  /** The directory of the key of the pods' tokens. */
  directory: string;
  disk_max: DiskUse | undefined;
  /** The address of the service in the variables of servers. */
  api_url: string;
  machine_id: string;
  events: Events;
}

type AnswerNodes = ImageRegistry['answer'];

/** Why a service with a cluster runs no other builds, for their developers. */
export const ONLY_IN_PODS =
  'its servers are pods of Kubernetes, and MUSTER_KUBERNETES_REGISTRY is not set, so their nodes cannot pull images; pack the server as an archive or a script, or tell the operator';

interface OpenedCluster extends AsyncDisposable {
  runtime: Runtime;
  /** Answers the requests of nodes for images; returns undefined for others. Undefined if nodes cannot pull images. */
  answerNodes: AnswerNodes | undefined;
}

/** Opens the runtime of a cluster. One that does not answer yet is reported, and used once it does. Throws StartError. */
export async function openKubernetes(options: KubernetesOptions): Promise<OpenedCluster> {
  const { settings, directory, disk_max, api_url, machine_id, events } = options;
  const { kubeconfig, host, port, image, registry: registry_host, has_agones } = settings;
  const credentials = openCredentials(kubeconfig);
  const namespace = settings.namespace ?? credentials.namespace;
  if (namespace === undefined) {
    throw new StartError(
      `MUSTER_KUBERNETES is "${kubeconfig}", which names no namespace: set MUSTER_KUBERNETES_NAMESPACE.`,
    );
  }
  await using opened = new AsyncDisposableStack();
  const key = readOrMakeKey(join(directory, 'pod-key'));
  const client = new ApiClient(credentials);
  const others = new OtherRegistries({ client, namespace });
  const askOther: OtherRegistries['ask'] = (...asked) => others.ask(...asked);
  const onFailed = (cause: unknown) =>
    events.emit({ event: 'runtime_failed', step: 'image', kinds: [...IMAGE_KINDS], cause });
  const registry =
    registry_host === undefined ? undefined : new ImageRegistry({ machine_id, secret: key, askOther, onFailed });
  const pod_port = opened.use(openPodPort({ host, port, key, registry }));
  const url = new URL(api_url);
  url.hostname = host.includes(':') ? `[${host}]` : host;
  // Another release may replace the file, but not the program that runs.
  const executable = `/proc/${process.pid}/exe`;
  const packed = new PackedImages({ executable, directory: join(directory, 'image-program') });
  const images =
    registry && registry_host !== undefined ? new ClusterImages({ host: registry_host, registry, packed }) : undefined;
  const runtime = opened.use(
    await openKubernetesRuntime({
      client,
      namespace,
      pod_port,
      images,
      has_agones,
      machine_id,
      image,
      disk_max,
      api_url,
      api_url_for_pods: url.origin,
      onLost: (cause) => events.emit({ event: 'cluster_unavailable', cause }),
    }),
  );
  const everything = opened.move();
  return {
    runtime,
    answerNodes: registry && registry_host !== undefined ? answerAt(registry_host, registry) : undefined,
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
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

/** Pods outlive the service, so their tokens must be valid after a restart. */
function readOrMakeKey(file: string): string {
  const known = existsSync(file) ? readFileSync(file, 'utf8') : '';
  if (known !== '') return known;
  const key = Buffer.from(crypto.getRandomValues(new Uint8Array(KEY_BYTES))).toString('base64url');
  writeFileSync(file, key, { mode: 0o600 });
  return key;
}
