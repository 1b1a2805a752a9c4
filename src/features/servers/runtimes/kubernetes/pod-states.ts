import { type Observation, type ServerHandle, UNKNOWN_END } from '../runtime.ts';
import type { Agones } from './agones.ts';
import { ClusterUnreachable } from './cluster-client.ts';
import type { ReadNodeAddress } from './node-addresses.ts';
import { nameOf } from './pod-manifest.ts';
import { findOutsideCause, observePod, type PodObservation } from './pod-observation.ts';
import type { PodPort } from './pod-port.ts';
import type { Pod } from './pod-shapes.ts';
import type { Pods } from './pods.ts';

/** Time for a pod to start once it waits for something that its operator must change. */
const NEEDS_OPERATOR_MAX_MS = 60_000;
/**
 * Time for a pod to start once its node fails to pull its image from Muster, which may restart or have to unpack it.
 */
const PULL_MAX_MS = 5 * 60_000;
/** Time for a pod to start. The cluster may have to add a node first. */
const START_MAX_MS = 15 * 60_000;

interface StatesOptions {
  pods: Pick<Pods, 'find' | 'is_loaded'>;
  pod_port: Pick<PodPort, 'connectionOf'>;
  addressOfNode: ReadNodeAddress;
  /** Undefined for plain pods. */
  agones?: Pick<Agones, 'observe'> | undefined;
}

export const identityOf = (server_id: string) => ({ pod: nameOf(server_id) });
/** Returns whether a server may have a pod. */
export const mayHavePod = ({ identity }: ServerHandle): boolean => identity === undefined || 'pod' in identity;

/** The states of servers, by what the cluster and the first processes of the pods say. */
export class PodStates {
  /** Ends of servers that the cluster does not know. */
  readonly #ends = new Map<string, Observation>();
  /** Since when servers are pending, in the time of `performance.now()`. */
  readonly #pending_since = new Map<string, number>();
  /** Since when servers are pending for a reason that their operator must change. */
  readonly #needs_operator_since = new Map<string, number>();
  /**
   * The losses of the nodes of servers, with the time of `performance.now()` when each was first observed. The cluster
   * says when a loss began by a clock of its own.
   */
  readonly #losses = new Map<string, { lost_at: string; since: number }>();

  constructor(private readonly options: StatesOptions) {}

  /** Records an end that the cluster does not know. */
  setEnd(server_id: string, end: Observation): void {
    this.#ends.set(server_id, end);
  }

  hasEnd(server_id: string): boolean {
    return this.#ends.has(server_id);
  }

  forget(server_id: string): void {
    this.#ends.delete(server_id);
    this.#forgetPending(server_id);
    this.#losses.delete(server_id);
  }

  #forgetPending(server_id: string): void {
    this.#pending_since.delete(server_id);
    this.#needs_operator_since.delete(server_id);
  }

  async observe(server: ServerHandle): Promise<Observation> {
    const seen = await this.#observe(server);
    // Its program starts, and connects, before its node reports that it runs.
    const is_connected = this.options.pod_port.connectionOf(server.server_id) !== undefined;
    return seen.is === 'pending' && is_connected ? { ...seen, can_stop: true } : seen;
  }

  async #observe(server: ServerHandle): Promise<Observation> {
    const { pods, pod_port } = this.options;
    const { server_id } = server;
    const known = this.#ends.get(server_id);
    if (known) return known;
    const pod = pods.find(nameOf(server_id));
    if (!pod) return await this.#observeWithoutPod(server);
    const connection = pod_port.connectionOf(server_id);
    if (connection?.end) return { ...connection.end, ...findOutsideCause(pod), is: 'ended' };
    const seen = observePod(pod);
    if (seen.is === 'pending') return this.#judgePending(server_id, seen);
    this.#forgetPending(server_id);
    // A pod that is connected is there, whatever the cluster reports about its node.
    if (seen.is === 'unreachable' && connection === undefined) return this.#measureLoss(server_id, seen);
    this.#losses.delete(server_id);
    return seen.is === 'ended' ? seen : await this.#describeRunning(server_id, pod);
  }

  async #observeWithoutPod(server: ServerHandle): Promise<Observation> {
    const { pods, agones } = this.options;
    const { server_id } = server;
    if (!mayHavePod(server)) return { is: 'absent' };
    // Before the first list of the pods, a missing pod does not mean that its server is gone.
    if (!pods.is_loaded) return { is: 'unreachable', for_ms: 0 };
    try {
      const seen = await agones?.observe(nameOf(server_id));
      if (seen?.is === 'pending') return this.#judgePending(server_id, seen);
      return seen ?? { is: 'absent' };
    } catch (cause) {
      if (!(cause instanceof ClusterUnreachable)) throw cause;
      return { is: 'unreachable', for_ms: 0 };
    }
  }

  #judgePending(
    server_id: string,
    { reason, needs_operator, is_pull }: Extract<PodObservation, { is: 'pending' }>,
  ): Observation {
    const now = performance.now();
    const since = this.#pending_since.get(server_id) ?? now;
    this.#pending_since.set(server_id, since);
    const needs_operator_since = needs_operator ? (this.#needs_operator_since.get(server_id) ?? now) : now;
    if (needs_operator) this.#needs_operator_since.set(server_id, needs_operator_since);
    else this.#needs_operator_since.delete(server_id);
    const needs_operator_max_ms = is_pull ? PULL_MAX_MS : NEEDS_OPERATOR_MAX_MS;
    const has_waited_too_long = now - since >= START_MAX_MS || now - needs_operator_since >= needs_operator_max_ms;
    if (has_waited_too_long) return { ...UNKNOWN_END, reason };
    return { is: 'pending', identity: identityOf(server_id), reason };
  }

  #measureLoss(server_id: string, { lost_at }: Extract<PodObservation, { is: 'unreachable' }>): Observation {
    const now = performance.now();
    const known = this.#losses.get(server_id);
    // While nothing was observed, the node may have been back.
    const since = known?.lost_at === lost_at ? known.since : now;
    this.#losses.set(server_id, { lost_at, since });
    return { is: 'unreachable', for_ms: now - since };
  }

  async #describeRunning(server_id: string, { spec, status }: Pod): Promise<Observation> {
    const identity = identityOf(server_id);
    try {
      const host = (await this.options.addressOfNode(spec?.nodeName ?? '')) ?? status?.hostIP;
      if (host !== undefined) return { is: 'running', identity, host };
    } catch (cause) {
      if (!(cause instanceof ClusterUnreachable)) throw cause;
    }
    return { is: 'pending', identity, reason: 'the address of its node is being read' };
  }
}
