import { Type } from '@sinclair/typebox';
import { ServiceError } from '../../../../platform/errors.ts';
import { forEachAtOnce } from '../../../../platform/pacing.ts';
import type { LogStream } from '../../tables.ts';
import { replaceAddress } from '../api-address.ts';
import { pieceAt } from '../output/output-files.ts';
import {
  type Accepted,
  type Observation,
  type OutputPiece,
  type OutputQuery,
  type Runtime,
  type ServerHandle,
  type StartOrder,
  UNKNOWN_END,
  type UsageReading,
} from '../runtime.ts';
import { Agones } from './agones.ts';
import { type CallLimits, type ClusterClient, ClusterRefusal, ClusterUnreachable } from './cluster-client.ts';
import { type ClusterImages, IMAGE_KINDS, isImage } from './cluster-images.ts';
import { createNodeAddresses } from './node-addresses.ts';
import type { PackedBuilds } from './packed-builds.ts';
import { type PodConnection, PodUnreachable } from './pod-connection.ts';
import { FINALIZER, LABELS, makePod, nameOf, type PodFiles, type PodOptions, selectorOf } from './pod-manifest.ts';
import { Piece, Usage } from './pod-messages.ts';
import { hideImageNames, observePod } from './pod-observation.ts';
import type { PodListener, PodPort } from './pod-port.ts';
import { imageProgramOf, programOf } from './pod-program.ts';
import type { Pod } from './pod-shapes.ts';
import { identityOf, mayHavePod, PodStates } from './pod-states.ts';
import { Pods } from './pods.ts';

/** The kinds of builds that pods fetch. */
export const FETCHED_KINDS = ['archive', 'javascript'] as const;
const CALLS_AT_ONCE_MAX = 16;
/** Kills at one time. Most of a kill that takes long is waiting for a pod that does not end. */
const KILLS_AT_ONCE_MAX = 64;
/** Time for a pod without a connection to end, before the kill counts as failed. */
const END_TIMEOUT_MS = 10_000;
/** Time for running pods to connect after the start, before they are killed without their last output. */
const CONNECT_WITHIN_MS = 10_000;
/** Time for the first list of the pods when the service starts. */
const FIRST_LIST_TIMEOUT_MS = 5_000;
const POLL_MS = 100;
const ACCEPTED = 'its pod is being created';
const NODE_LOST = { ...UNKNOWN_END, reason: 'its node was lost', is_disruption: true } as const;

export interface KubernetesRuntimeOptions extends PodOptions {
  client: ClusterClient;
  namespace: string;
  pod_port: PodPort;
  /** How nodes pull the images of builds; undefined if they cannot. */
  images: ClusterImages | undefined;
  builds: PackedBuilds;
  /** By default no other process can have the pods. */
  lease?: PodLease;
  /** Ends the wait for the first list of the pods. */
  signal?: AbortSignal;
  /** Whether Agones makes the pods. */
  has_agones: boolean;
  /** The address of the service in the variables of servers. */
  api_url: string;
  /** The address at which pods reach the service. */
  api_url_for_pods: string;
  onLost(cause: unknown): void;
}

/**
 * The right of this process to the pods of a machine. Only the process that has it changes the pods and accepts their
 * connections. Others may have it later.
 */
export interface PodLease extends CallLimits {
  /** Aborted when this process no longer has it. */
  ended: AbortSignal;
}

/** Opens the runtime that runs each server as a pod of a Kubernetes cluster. Disposing of it leaves the pods. */
export async function openKubernetesRuntime(options: KubernetesRuntimeOptions): Promise<Runtime & AsyncDisposable> {
  const { client, namespace, has_agones, machine_id, builds, images, api_url, api_url_for_pods, onLost } = options;
  const { pod_port, lease, signal } = options;
  const stopping = new AbortController();
  const started_at = performance.now();
  let notify = () => {};
  const onChange = () => notify();
  const selector = selectorOf(machine_id);
  const pods = new Pods({ client, namespace, selector, onLost, onChange, signal: stopping.signal });
  const agones = has_agones ? new Agones(client, namespace) : undefined;
  const states = new PodStates({ pods, pod_port, addressOfNode: createNodeAddresses(client), agones });
  const podOf = (server_id: string) => pods.find(nameOf(server_id));

  const mayAct = () => lease?.mayAct() ?? true;
  const connectionOf = (server_id: string) => (mayAct() ? pod_port.connectionOf(server_id) : undefined);
  const pod_listener: PodListener = { onChange, mayAct };
  pod_port.serve(pod_listener);
  // Not only when this runtime is disposed of: steps that are under way delay that, and pods need the next holder.
  lease?.ended.addEventListener('abort', () => pod_port.stopServing(pod_listener), { once: true });

  async function start(order: StartOrder): Promise<Accepted> {
    const { server_id } = order;
    const seen = await states.observe({ server_id, identity: undefined });
    if (seen.is === 'running' || seen.is === 'pending') return seen;
    try {
      if (seen.is === 'unreachable') throw new ClusterUnreachable('the node of its earlier pod does not answer');
      if (seen.is === 'ended') await removePod(server_id);
      await createPod(order);
    } catch (cause) {
      if (cause instanceof ClusterUnreachable) throw new ServiceError('SERVERS_CLUSTER_UNAVAILABLE', {}, { cause });
      states.setEnd(server_id, UNKNOWN_END);
      if (!(cause instanceof ClusterRefusal)) throw cause;
      const error = `the cluster refused its pod: ${hideImageNames(cause.message)}`;
      throw new ServiceError('SERVERS_SERVER_FAILED_TO_CREATE', { error }, { cause });
    }
    return { is: 'pending', identity: identityOf(server_id), reason: ACCEPTED };
  }

  async function createPod(order: StartOrder): Promise<void> {
    const { server_id, resources } = order;
    const { token, socket } = pod_port.addressOf(server_id);
    const program = isImage(order.build) ? await imageProgramOf(order) : programOf(order);
    const files = images && isImage(order.build) ? await images.prepare(order) : await prepareFiles(order);
    const environment = replaceAddress(program.environment, { from: api_url, to: api_url_for_pods });
    const server = { ...program, environment, url: socket, token, memory: resources.memory };
    const manifest = makePod({ order, files, server }, options);
    if (agones) return await agones.create(manifest);
    if (await pods.create(manifest)) return;
    // An earlier call created it, and its answer was lost.
    const pod = await pods.read(nameOf(server_id));
    if (!pod) throw new ClusterUnreachable('the cluster changes its quotas, or removes an earlier pod');
    if (pod.metadata.labels?.[LABELS.machine] !== machine_id) {
      throw new ClusterRefusal(
        409,
        `another Muster has a pod with the name ${nameOf(server_id)}: tell the operator to give each Muster a namespace of its own`,
      );
    }
  }

  /** Prepares a build for its pod to fetch. */
  async function prepareFiles({ server_id, build }: StartOrder): Promise<PodFiles> {
    const { token, build: url } = pod_port.addressOf(server_id);
    const { sha256, bytes } = await builds.facts(build);
    return { kind: 'fetched', order: { url, token, sha256 }, bytes };
  }

  async function stop({ server_id }: ServerHandle): Promise<boolean> {
    const pod = podOf(server_id);
    if (!pod) return pods.is_loaded;
    const connection = connectionOf(server_id);
    if (!connection) return observePod(pod).is === 'ended';
    if (connection.end) return true;
    return (await connection.call(Type.Object({}), { do: 'stop' }).catch(ignoreUnreachable)) !== undefined;
  }

  /** Kills a server. Returns whether it has ended completely. */
  async function killOne(server: ServerHandle): Promise<boolean> {
    const { server_id } = server;
    const pod = podOf(server_id) ?? (agones && (await removeGameServer(agones, server)));
    if (!pod) return pods.is_loaded;
    const connection = await awaitConnection(server_id, pod);
    if (connection) {
      await connection.call(Type.Object({}), { do: 'kill' }).catch(ignoreUnreachable);
      // A hostile server can answer in the name of its pod. The first process reports the end before it answers.
      if (connection.end) return true;
    }
    const seen = observePod(pod);
    if (seen.is === 'ended' || states.hasEnd(server_id)) return true;
    const before = await states.observe(server);
    await pods.end(pod.metadata.name, seen.is === 'running' ? 1 : 0);
    // A node that does not answer ends the pod as soon as it is back.
    if (seen.is === 'running' && !(await hasEnded(server_id))) return false;
    const end = before.is === 'ended' ? before : UNKNOWN_END;
    states.setEnd(server_id, seen.is === 'unreachable' ? NODE_LOST : end);
    return true;
  }

  /** Returns the connection of a pod. Shortly after the start of this runtime, waits for it. */
  async function awaitConnection(server_id: string, pod: Pod): Promise<PodConnection | undefined> {
    while (!connectionOf(server_id) && performance.now() - started_at < CONNECT_WITHIN_MS) {
      if (observePod(podOf(server_id) ?? pod).is !== 'running') break;
      await Bun.sleep(POLL_MS);
    }
    return connectionOf(server_id);
  }

  /** Removes the GameServer of a server, and keeps why it failed. Returns its pod, if Agones has just made one. */
  async function removeGameServer(agones: Agones, server: ServerHandle): Promise<Pod | undefined> {
    const { server_id } = server;
    const before = await states.observe(server);
    await agones.remove(nameOf(server_id));
    if (before.is === 'ended') states.setEnd(server_id, before);
    return await pods.read(nameOf(server_id));
  }

  async function hasEnded(server_id: string): Promise<boolean> {
    for (const started = performance.now(); performance.now() - started < END_TIMEOUT_MS; ) {
      const pod = podOf(server_id);
      if (!pod || observePod(pod).is === 'ended') return true;
      await Bun.sleep(POLL_MS);
    }
    return false;
  }

  async function readOutput({ server_id }: ServerHandle, stream: LogStream, query: OutputQuery): Promise<OutputPiece> {
    const { from = '0', ...limits } = query;
    const connection = connectionOf(server_id);
    if (!connection || connection.sizes[stream] === Number(from)) return pieceAt(Number(from));
    const { start, bytes: encoded, ...piece } = await connection.call(Piece, { do: 'read', stream, from, ...limits });
    const bytes = Buffer.from(encoded, 'base64');
    if (bytes.length > limits.bytes_max) {
      connection.fail();
      throw new PodUnreachable('the pod gave more output than it was asked for');
    }
    // A piece is full if there is more. Otherwise a hostile server could have a round of readings go on without end.
    const has_more = piece.has_more && bytes.length === limits.bytes_max;
    return pieceAt(start, { ...piece, bytes, has_more });
  }

  async function removePod(server_id: string): Promise<void> {
    // If the pod does not answer, deleting it ends its container.
    await connectionOf(server_id)?.call(Type.Object({}), { do: 'leave' }).catch(ignoreUnreachable);
    await agones?.remove(nameOf(server_id));
    if (podOf(server_id)) await pods.remove(nameOf(server_id), FINALIZER);
    states.forget(server_id);
  }

  const serverIdsOf = (some: Pod[]) => some.flatMap(({ metadata }) => metadata.labels?.[LABELS.server] ?? []);

  /** Returns the ids of the servers that have a pod, or for which Agones was asked to make one. */
  async function listWith(some: Pod[], selected: string): Promise<string[]> {
    const asked = await agones?.list(selected).catch(ignoreUnreachable);
    return [...new Set(serverIdsOf(some).concat(asked ?? []))];
  }

  const mayWait = () => performance.now() - started_at < FIRST_LIST_TIMEOUT_MS && !signal?.aborted;
  while (!pods.is_loaded && mayWait()) await Bun.sleep(POLL_MS);

  return {
    kinds: kindsOfPods({ has_images: images !== undefined }),
    // An image may listen on a fixed port, so it keeps its internal port. Other programs listen on the port that they are
    // given.
    kinds_with_own_network: IMAGE_KINDS,
    start,
    stop,
    readOutput,
    remove: removePod,
    async list() {
      const server_ids = await listWith(pods.list(), selector);
      return server_ids.map((server_id) => ({ server_id, identity: undefined }));
    },
    other_machines: {
      async list(machine_ids) {
        const selected = selectorOf(...machine_ids);
        return await listWith((await pods.select(selected)).pods, selected);
      },
      async remove(server_id) {
        await agones?.remove(nameOf(server_id));
        await pods.remove(nameOf(server_id), FINALIZER);
      },
    },
    async observe(servers) {
      const observed = new Map<string, Observation>();
      await forEachAtOnce(servers, CALLS_AT_ONCE_MAX, async (server) => {
        observed.set(server.server_id, await states.observe(server));
      });
      return observed;
    },
    async kill(servers, onGone) {
      const gone = new Set<string>();
      await forEachAtOnce(servers, KILLS_AT_ONCE_MAX, async (server) => {
        if (mayHavePod(server) && !(await killOne(server).catch(ignoreUnreachable))) return;
        gone.add(server.server_id);
        onGone?.(server.server_id);
      });
      return gone;
    },
    async readUsage(servers) {
      const used = new Map<string, UsageReading>();
      await forEachAtOnce(servers, CALLS_AT_ONCE_MAX, async ({ server_id }) => {
        const connection = connectionOf(server_id);
        const reading = connection && (await connection.call(Usage, { do: 'usage' }).catch(ignoreUnreachable));
        if (reading) used.set(server_id, reading);
      });
      return used;
    },
    onChange(listener) {
      notify = listener;
    },
    async [Symbol.asyncDispose]() {
      pod_port.stopServing(pod_listener);
      stopping.abort();
      await pods.stopped;
    },
  };
}

/** Returns the kinds of builds that pods run. */
export function kindsOfPods({ has_images }: { has_images: boolean }): Runtime['kinds'] {
  return has_images ? [...FETCHED_KINDS, ...IMAGE_KINDS] : [...FETCHED_KINDS];
}

/** Ignores a pod or an API server that does not answer: the caller's next attempt covers it. */
function ignoreUnreachable(error: unknown): undefined {
  if (!(error instanceof ClusterUnreachable || error instanceof PodUnreachable)) throw error;
}
