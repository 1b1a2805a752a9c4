import type { JWK } from 'jose';
import type { Database } from '../../platform/database/database.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { ClusterLease, ClusterMachine, HeldCluster, Machines } from '../machines/machines.ts';
import { machineIdOf } from './cluster-id.ts';
import type { Logs } from './logs.ts';
import { startMetering } from './metering.ts';
import { type ReconcileDependencies, type ServerRelays, startReconciling } from './reconcile.ts';
import type { Cluster, ClusterPort } from './runtimes/kubernetes/kubernetes.ts';
import * as store from './store.ts';

/** Pause before a cluster that did not answer is asked again which one it is. */
const ASK_AGAIN_AFTER_MS = 2_000;
/** Pods have no relays. */
const NO_RELAYS: ServerRelays = { keep: async () => new Set() };

interface ClusterDependencies extends Omit<ReconcileDependencies, 'machines' | 'relays' | 'runtime' | 'takes_servers'> {
  machines: Pick<
    Machines,
    'joinCluster' | 'areAllDraining' | 'draining' | 'abandoned' | 'isOtherTakingServersInView' | 'lockHeld'
  >;
  logs: Logs;
  cluster: Cluster;
  cluster_port: ClusterPort;
  /** The key of the pods' tokens. */
  key: JWK;
}

/** The work of this process for a cluster. */
export interface ClusterWork extends Loop {
  /** Lets another process have the pods, and never takes them again. */
  leave(): Promise<void>;
}

/**
 * Starts the loop that converges the servers of a cluster's machine to their desired state while this process holds its lease.
 * Several processes may share a cluster. They wait until the holder lets the lease go, or is lost.
 */
export function startClusterWork(dependencies: ClusterDependencies, stopping: AbortSignal): ClusterWork {
  const { events, machines, cluster, key, node } = dependencies;
  const leaving = new AbortController();
  const signal = AbortSignal.any([stopping, leaving.signal]);
  let joined: { machine: ClusterMachine; lease: ClusterLease } | undefined;
  let is_silent = false;

  /** Finds out which cluster this is. Returns undefined if it does not answer. */
  async function join(): Promise<typeof joined> {
    try {
      const place = { namespace_id: await cluster.readId(), datacenter_id: node.datacenter_id };
      const machine = { node_id: machineIdOf(place, key), name: cluster.name };
      is_silent = false;
      return { machine, lease: await machines.joinCluster(machine) };
    } catch (cause) {
      if (!is_silent) events.emit({ event: 'cluster_unavailable', cause });
      is_silent = true;
      return undefined;
    }
  }

  const loop = startLoop({
    name: 'cluster',
    every_ms: ASK_AGAIN_AFTER_MS,
    signal,
    events,
    async step() {
      joined ??= await join();
      const held = joined && (await joined.lease.acquire(joined.machine, signal));
      if (held) await workAsHolder(held, dependencies, signal);
      return 0;
    },
  });
  return {
    ...loop,
    async leave() {
      leaving.abort();
      await loop.stopped;
    },
  };
}

/** Works on the servers of a cluster until the lease is lost, or the signal is aborted and the lease released. */
async function workAsHolder(held: HeldCluster, dependencies: ClusterDependencies, stopping: AbortSignal) {
  const { database, logs, node, cluster_port } = dependencies;
  const { node_id, lost, mayAct } = held;
  const signal = AbortSignal.any([stopping, lost]);
  try {
    // Another process may have added to them since this one was the holder.
    logs.forgetCursors();
    await using runtime = await cluster_port.openRuntime({ machine_id: node_id, mayAct });
    const fenced = fence(database, held);
    const own = {
      ...dependencies,
      database: fenced,
      whileHeld: fenced.transact,
      node: { ...node, node_id },
      machines: {
        ...dependencies.machines,
        lockHeld: held.lockHeld,
        isReplaced: () => !mayAct(),
        // Its pods are removed as leftovers.
        onGivenUp() {},
      },
      runtime,
      relays: NO_RELAYS,
      takes_servers: true,
    };
    const reconciling = startReconciling(own, signal);
    const { listServers } = reconciling;
    const { readUsage } = runtime;
    const metering = readUsage ? startMetering({ ...own, listServers, readUsage }, signal) : [];
    await Promise.all([reconciling, ...metering].map(({ stopped }) => stopped));
    // First, because its pods then look for another process.
    if (!lost.aborted) await held.release({ has_servers: await store.hasServers(database.queries, node_id) });
  } finally {
    // Without effect if it was released or lost.
    await held.release({ has_servers: true });
  }
}

/** Lets transactions fail as soon as another process is the holder. */
function fence(database: Database, { lockHeld }: HeldCluster): Database {
  return {
    ...database,
    transact: (work) =>
      database.transact(async (tx) => {
        if (!(await lockHeld(tx))) throw new Error('another process has the pods of the cluster by now');
        return await work(tx);
      }),
  };
}
