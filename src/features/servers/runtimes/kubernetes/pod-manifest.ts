import { ServiceError } from '../../../../platform/errors.ts';
import type { DiskUse, StartOrder } from '../runtime.ts';
import { type BuildOrder, encodeOrder, type ServerOrder } from './pod-messages.ts';
import { ORDER_VARIABLE, POD_COMMANDS, POD_EXECUTABLE, POD_FOLDERS } from './pod-names.ts';

export const LABELS = { machine: 'muster.internal/machine', server: 'muster.internal/server' } as const;
/** The annotation with the build's kind, for a pod whose node pulls an image. */
export const IMAGE_ANNOTATION = 'muster.internal/image';
/** Keeps an ended pod in the API until its end is recorded. */
export const FINALIZER = 'muster.internal/end';
export const CONTAINERS = { build: 'build', server: 'server' } as const;

/** The user id of all pods, which no account of a node should have. */
export const USER_ID = 10_001;
/** Memory of the first process, in addition to that of the server. */
const FIRST_PROCESS_MIB = 96;
/** Disk space that a pod requests, by which the scheduler places it. It may use more. */
const DISK_REQUEST = '64Mi';
/** Limit of a server's output that Muster has not fetched yet. */
const OUTPUT_BYTES_MAX = 1_024 ** 3;
/** Time for a server to end if others than Muster delete its pod, such as a drain of the node. */
const GRACE_SECONDS = 60;
/** Only privileged programs may listen on ports below it. */
const UNPRIVILEGED_PORT_MIN = 1_024;
/** The longest text that a program gets in a variable is 128 KiB (execve(2)). */
const ORDER_CHARACTERS_MAX = 120 * 1_024;

export const nameOf = (server_id: string) => `muster-${server_id}`;
export const selectorOf = (...machine_ids: string[]) => `${LABELS.machine} in (${machine_ids.join(',')})`;

export interface PodOptions {
  machine_id: string;
  /** Muster's own image. */
  own_image: string;
  /** The most that a server may have on the disk; undefined for no limit. */
  disk_max: DiskUse | undefined;
}

/** How the files of a build come to a pod. */
export type PodFiles =
  /** An init container fetches them. `bytes`: what they take on the disk. */
  | { kind: 'fetched'; order: BuildOrder; bytes: number }
  /** They are an image, which has Muster's executable as well. */
  | { kind: 'image'; image: string };

interface PodContents {
  order: StartOrder;
  files: PodFiles;
  server: ServerOrder;
}

/** Returns the manifest of a server's pod. Throws an error for a server that no pod can run. */
export function makePod({ order, files, server }: PodContents, { machine_id, own_image, disk_max }: PodOptions) {
  const { server_id, resources, ports } = order;
  if (Object.values(ports).some(({ port_range }) => port_range !== undefined)) {
    throw refusal('a pod of the cluster has no port ranges; give the server single ports');
  }
  const encoded = encodeOrder(server);
  if (encoded.length > ORDER_CHARACTERS_MAX) {
    throw refusal('its arguments and its environment are too long for a pod; shorten them');
  }
  const numbers = { cpu: `${resources.cpu}m`, memory: `${resources.memory + FIRST_PROCESS_MIB}Mi` };
  // The kubelet counts all volumes of a pod. What the server itself writes has the limit of its folder.
  const build_bytes = files.kind === 'fetched' ? files.bytes : 0;
  const disk = disk_max && { 'ephemeral-storage': String(disk_max.bytes + build_bytes + OUTPUT_BYTES_MAX) };
  const security = {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  };
  const container = { imagePullPolicy: 'IfNotPresent', securityContext: security };
  const volume = (name: keyof typeof POD_FOLDERS, readOnly = false) => ({
    name,
    mountPath: POD_FOLDERS[name],
    readOnly,
  });
  const has_low_port = Object.values(ports).some(
    ({ internal_port = UNPRIVILEGED_PORT_MIN }) => internal_port < UNPRIVILEGED_PORT_MIN,
  );
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: nameOf(server_id),
      labels: {
        'app.kubernetes.io/managed-by': 'muster',
        [LABELS.machine]: machine_id,
        [LABELS.server]: server_id,
      },
      annotations: {
        ...(files.kind === 'image' && { [IMAGE_ANNOTATION]: order.build.kind }),
        'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
      },
      finalizers: [FINALIZER],
    },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: GRACE_SECONDS,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: USER_ID,
        runAsGroup: USER_ID,
        fsGroup: USER_ID,
        seccompProfile: { type: 'RuntimeDefault' },
        // Clusters before 1.22 refuse it.
        ...(has_low_port && { sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }] }),
      },
      volumes: [
        ...(files.kind === 'fetched' ? [{ name: 'build', emptyDir: {} }] : []),
        { name: 'work', emptyDir: disk_max ? { sizeLimit: String(disk_max.bytes) } : {} },
        { name: 'output', emptyDir: { sizeLimit: String(OUTPUT_BYTES_MAX) } },
      ],
      initContainers:
        files.kind === 'fetched'
          ? [
              {
                ...container,
                image: own_image,
                name: CONTAINERS.build,
                args: [POD_COMMANDS.build],
                env: [{ name: ORDER_VARIABLE, value: encodeOrder(files.order) }],
                // Equal to those of the server, so that the pod is the last to be evicted (QoS class Guaranteed).
                resources: { limits: numbers, requests: numbers },
                volumeMounts: [volume('build'), volume('work')],
              },
            ]
          : [],
      containers: [
        {
          ...container,
          name: CONTAINERS.server,
          ...(files.kind === 'fetched' ? { image: own_image } : { image: files.image, command: [POD_EXECUTABLE.file] }),
          args: [POD_COMMANDS.server],
          env: [
            { name: ORDER_VARIABLE, value: encoded },
            ...(files.kind === 'image' ? [{ name: 'LD_LIBRARY_PATH', value: POD_EXECUTABLE.folder }] : []),
          ],
          ports: Object.values(ports).flatMap(({ protocol, internal_port, public_port }) =>
            internal_port === undefined || public_port === undefined
              ? []
              : [
                  {
                    containerPort: internal_port,
                    hostPort: public_port,
                    protocol: protocol === 'udp' ? 'UDP' : 'TCP',
                  },
                ],
          ),
          resources: {
            limits: { ...numbers, ...disk },
            requests: { ...numbers, ...(disk && { 'ephemeral-storage': DISK_REQUEST }) },
          },
          volumeMounts: [
            ...(files.kind === 'fetched' ? [volume('build', true)] : []),
            volume('work'),
            volume('output'),
          ],
        },
      ],
    },
  };
}

export type PodManifest = ReturnType<typeof makePod>;

const refusal = (error: string) => new ServiceError('SERVERS_SERVER_FAILED_TO_CREATE', { error });
