import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../../../../platform/errors.ts';
import type { Events } from '../../../../platform/events.ts';
import type { DiskUse, Runtime } from '../runtime.ts';
import { ApiClient } from './api-client.ts';
import { openCredentials } from './credentials.ts';
import { openKubernetesRuntime } from './kubernetes-runtime.ts';
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

/** Why a service with a cluster runs no other builds, for their developers. */
export const ONLY_IN_PODS =
  'its servers are pods of Kubernetes, which run archives and scripts; pack the server as one of these';

/** Opens the runtime of a cluster. One that does not answer yet is reported, and used once it does. Throws StartError. */
export async function openKubernetes(options: KubernetesOptions): Promise<Runtime & AsyncDisposable> {
  const { settings, directory, disk_max, api_url, machine_id, events } = options;
  const { kubeconfig, host, port, image, has_agones } = settings;
  const credentials = openCredentials(kubeconfig);
  const namespace = settings.namespace ?? credentials.namespace;
  if (namespace === undefined) {
    throw new StartError(
      `MUSTER_KUBERNETES is "${kubeconfig}", which names no namespace: set MUSTER_KUBERNETES_NAMESPACE.`,
    );
  }
  await using opened = new AsyncDisposableStack();
  const pod_port = opened.use(openPodPort({ host, port, key: readOrMakeKey(join(directory, 'pod-key')) }));
  const url = new URL(api_url);
  url.hostname = host.includes(':') ? `[${host}]` : host;
  const runtime = opened.use(
    await openKubernetesRuntime({
      client: new ApiClient(credentials),
      namespace,
      pod_port,
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
  return { ...runtime, [Symbol.asyncDispose]: () => everything.disposeAsync() };
}

/** Pods outlive the service, so their tokens must be valid after a restart. */
function readOrMakeKey(file: string): string {
  const known = existsSync(file) ? readFileSync(file, 'utf8') : '';
  if (known !== '') return known;
  const key = Buffer.from(crypto.getRandomValues(new Uint8Array(KEY_BYTES))).toString('base64url');
  writeFileSync(file, key, { mode: 0o600 });
  return key;
}
