import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../platform/database/database.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { ClusterLease, ClusterMachine, HeldCluster, Machines, Offer } from '../machines/machines.ts';
import { machineIdOf } from './cluster-id.ts';
import type { Logs } from './logs/logs.ts';
import { type ReconcileDependencies, type ServerRelays, startReconciling } from './reconcile.ts';
import type { Cluster, ClusterPort } from './runtimes/kubernetes/cluster.ts';
import * as store from './store.ts';
import { startMetering } from './usage/metering.ts';

/** Pause between the end of a lease and the next attempt to get one. */
const TAKE_AGAIN_AFTER_MS = 2_000;
/**
 * The longest pause while the API server does not answer. Short, because servers wait to start, perhaps for this
 * process.
 */
const JOIN_AGAIN_MAX_MS = 5_000;
/** Time for steps that are under way to end before the lease is released. Some wait for a large build to be unpacked. */
const STEPS_END_WITHIN_MS = 3_000;
/** How often the holder checks that it reaches the cluster, and how long it waits for the answer. */
const REACH_EVERY_MS = 5_000;
/** The holder prepares to offer the lease once it has not reached the cluster for this time. */
const OFFER_PREPARED_AFTER_MS = 7_500;
/**
 * The holder offers the lease after this time: all calls have ended (`CALL_TIMEOUT_MS` in runtimes/kubernetes/cluster-client.ts),
 * and the API server does not merely restart.
 */
const OFFERED_AFTER_MS = 25_000;
/** Pods refuse ranges when they start, so ranges take no ports. */
const NO_PORTS = { min: 1, max: 0 };
/** Pods have no relays. */
const NO_RELAYS: ServerRelays = { openOnly: async () => new Set() };

interface ClusterDependencies extends Omit<ReconcileDependencies, 'machines' | 'relays' | 'runtime' | 'takes_servers'> {
  machines: Pick<
    Machines,
    'joinCluster' | 'areAllDraining' | 'draining' | 'machinesThatRemoveNoPods' | 'isOtherSeenTakingServers' | 'lockHeld'
  >;
  logs: Logs;
  cluster: Cluster;
  cluster_port: ClusterPort;
  /** The key of the pods' tokens. */
  key: string;
}

interface JoinedCluster {
  machine: ClusterMachine;
  lease: ClusterLease;
}

/** The work of this process for a cluster. */
export interface ClusterWork extends Loop {
  /** Lets another process have the pods, and never takes them again. Does not wait for steps that take long. */
  leave(): Promise<void>;
}

/**
 * Starts the loop that converges the servers of a cluster's machine to their desired state while this process holds its lease.
 * Several processes may share a cluster. The others wait until the holder releases the lease, or its heartbeat stops.
 */
export function startClusterWork(dependencies: ClusterDependencies, service_stopping: AbortSignal): ClusterWork {
  const { events, machines, cluster, key } = dependencies;
  const { datacenter_id } = dependencies.machine;
  const leaving = new AbortController();
  const leave_signal = AbortSignal.any([service_stopping, leaving.signal]);
  const released = Promise.withResolvers<void>();
  let joined: JoinedCluster | undefined;
  let is_reported = false;

  /** Finds out which cluster this is. Reports a failure once. */
  async function readClusterId(): Promise<string> {
    try {
      return await cluster.readId(leave_signal);
    } catch (cause) {
      if (!is_reported && !leave_signal.aborted) events.emit({ event: 'cluster_unavailable', cause });
      is_reported = true;
      throw cause;
    }
  }

  const reachesCluster = () =>
    cluster.readId(leave_signal).then(
      () => true,
      () => false,
    );

  async function join(): Promise<JoinedCluster> {
    const place = { pods_namespace_id: await readClusterId(), datacenter_id };
    const machine = { node_id: machineIdOf(place, key), name: cluster.name };
    return { machine, lease: await machines.joinCluster(machine) };
  }

  const loop = startLoop({
    name: 'cluster',
    every_ms: TAKE_AGAIN_AFTER_MS,
    pause_max_ms: JOIN_AGAIN_MAX_MS,
    signal: leave_signal,
    events,
    async step() {
      joined ??= await join();
      const held = await joined.lease.acquire(joined.machine, { reachesCluster, signal: leave_signal });
      if (held) await workAsHolder(held, dependencies, { leave_signal, onReleased: released.resolve });
      return 0;
    },
  });
  return {
    ...loop,
    async leave() {
      leaving.abort();
      await Promise.race([loop.stopped, released.promise]);
    },
  };
}

interface Stop {
  /** Aborted when this process is to give up the lease: the service stops, or another process gets the pods. */
  leave_signal: AbortSignal;
  /** Called once the lease was released, while steps that take long may still be under way. */
  onReleased(): void;
}

/** Works on the servers of a cluster until the lease has ended, or `leave_signal` is aborted and the lease released. */
async function workAsHolder(held: HeldCluster, dependencies: ClusterDependencies, { leave_signal, onReleased }: Stop) {
  const { database, logs, machine, cluster_port } = dependencies;
  const { node_id, ended, mayAct } = held;
  const work_signal = AbortSignal.any([leave_signal, ended]);
  try {
    // Another process may have added to the logs since this one was last the holder.
    logs.forgetCursors();
    await using runtime = await cluster_port.openRuntime({ machine_id: node_id, lease: held, signal: work_signal });
    const fenced = fence(database, held);
    const own = {
      ...dependencies,
      database: fenced,
      whileHeld: fenced.transact,
      machine: { ...machine, node_id, range_ports: NO_PORTS },
      machines: {
        ...dependencies.machines,
        lockHeld: held.lockHeld,
        isReplaced: () => !mayAct(),
        // Its pods are removed as leftovers.
        onDeclaredLost() {},
      },
      runtime,
      relays: NO_RELAYS,
      takes_servers: true,
    };
    const reconciling = startReconciling(own, work_signal);
    const { listServers } = reconciling;
    const { readUsage } = runtime;
    const metering = readUsage ? startMetering({ ...own, listServers, readUsage }, work_signal) : [];
    const offering = startOffering(held, dependencies, work_signal);
    const stopped = Promise.all([reconciling, offering, ...metering].map((work) => work.stopped));
    await Promise.race([stopped, pauseAfter(work_signal, STEPS_END_WITHIN_MS)]);
    try {
      if (!ended.aborted) await held.release({ has_servers: await store.isAnyOnMachine(database.queries, node_id) });
      if (leave_signal.aborted) onReleased();
    } finally {
      // What is still under way begins no change of the cluster, and its transactions fail.
      await stopped;
    }
  } finally {
    // After a failure above, this process may still have the lease. Otherwise this has no effect.
    await held.release({ has_servers: true });
  }
}

/** Offers the lease to other processes while this one does not reach the cluster. */
function startOffering(held: HeldCluster, { cluster, events }: ClusterDependencies, signal: AbortSignal): Loop {
  let reached_at = performance.now();
  return startLoop({
    name: 'cluster-reached',
    every_ms: REACH_EVERY_MS,
    signal,
    events,
    async step() {
      try {
        await cluster.readId(AbortSignal.any([signal, AbortSignal.timeout(REACH_EVERY_MS)]));
        reached_at = performance.now();
      } catch {
        // The watch of the pods reports it.
      }
      if (!signal.aborted) await held.setOffer(offerAfter(performance.now() - reached_at));
      return 0;
    },
  });
}

function offerAfter(unreached_ms: number): Offer {
  if (unreached_ms > OFFERED_AFTER_MS) return 'made';
  return unreached_ms > OFFER_PREPARED_AFTER_MS ? 'prepared' : 'none';
}

/** Waits for a time after a signal was aborted. */
async function pauseAfter(signal: AbortSignal, milliseconds: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => resolve(), { once: true });
  if (signal.aborted) resolve();
  await promise;
  await sleep(milliseconds, undefined, { ref: false });
}

/** Makes transactions fail as soon as another process is the holder. */
function fence(database: Database, { lockHeld }: HeldCluster): Database {
  return {
    ...database,
    transact: (work) =>
      database.transact(async (tx) => {
        if (!(await lockHeld(tx)))
          throw new Error('another process has taken over the cluster, so this change was not recorded');
        return await work(tx);
      }),
  };
}
