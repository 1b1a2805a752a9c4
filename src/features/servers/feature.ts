import type { JWK } from 'jose';
import { assert } from '../../platform/errors.ts';
import type { Feature } from '../../platform/feature.ts';
import { loadKey } from '../../platform/tokens/keys.ts';
import type { Machines } from '../machines/machines.ts';
import type { AddressOf } from '../port-names.ts';
import { type ClusterWork, startClusterWork } from './cluster-work.ts';
import { startLimitingDisk } from './disk-limit.ts';
import { createLogs, type LogsDependencies } from './logs/logs.ts';
import { startLimitingPorts } from './port-limit.ts';
import { type ReconcileDependencies, startReconciling } from './reconcile.ts';
import { serverRoutes } from './routes.ts';
import type { AnswerNodes, Cluster, ClusterPort } from './runtimes/kubernetes/cluster.ts';
import type { DiskUse } from './runtimes/runtime.ts';
import { createServers, type Servers, type ServersDependencies } from './servers.ts';
import * as store from './store.ts';
import { startMetering } from './usage/metering.ts';

type Dependencies = LogsDependencies &
  Omit<ServersDependencies & ReconcileDependencies, 'logs' | 'takes_servers'> & {
    addressOf: AddressOf;
    /** The most that a server may have on the disk; undefined for no limit. */
    disk_max: DiskUse | undefined;
    /** The cluster that runs servers instead of this machine; undefined for none. */
    cluster: Cluster | undefined;
    machines: Machines;
  };

/** What the service asks of its cluster. */
export interface ClusterControl extends AsyncDisposable {
  /** Lets another process have the pods of the cluster. Without another process, keeps them until the work ends. */
  leaveSharedCluster(): Promise<void>;
  /** Answers the requests of nodes for images; returns undefined for others. Undefined if nodes pull none from this service. */
  answerNodes: AnswerNodes | undefined;
  /** Returns how many builds and layers a cluster reads from this process, and how many it may. Undefined without one. */
  countBuildReads: ClusterPort['countReads'] | undefined;
}

/**
 * Opens game servers: their desired state, and the background work that starts and ends them on this machine, or in a cluster.
 * Throws StartError if the port for pods is in use.
 */
export async function openServers(dependencies: Dependencies): Promise<Feature<Servers & ClusterControl>> {
  const { database, clock, cluster, machines, disk_max } = dependencies;
  const { readUsage, measureDisk, findStrayPorts } = dependencies.runtime;
  const logs = createLogs(dependencies);
  const servers = createServers({ ...dependencies, logs });
  const key = cluster && bytesOf(await loadKey(database.queries, clock, 'pods'));
  const cluster_port = cluster && key !== undefined ? openPort(dependencies, cluster, key) : undefined;
  let cluster_work: ClusterWork | undefined;
  return {
    api: {
      ...servers,
      answerNodes: cluster_port?.answerNodes,
      countBuildReads: cluster_port?.countReads,
      async leaveSharedCluster() {
        if (cluster_work && (await machines.prepareToLeaveCluster())) await cluster_work.leave();
      },
      [Symbol.asyncDispose]: async () => await cluster_port?.[Symbol.asyncDispose](),
    },
    routes: serverRoutes(servers, dependencies.addressOf),
    startWork(signal) {
      const unrecorded_failures = new Map<string, string>();
      const own = { ...dependencies, logs, unrecorded_failures, takes_servers: cluster === undefined };
      const reconciling = startReconciling(own, signal);
      const shared = { ...dependencies, unrecorded_failures, listServers: reconciling.listServers };
      const metering = readUsage ? startMetering({ ...shared, readUsage }, signal) : [];
      const limiting_disk = measureDisk && disk_max && startLimitingDisk({ ...shared, measureDisk, disk_max }, signal);
      const limiting_ports = findStrayPorts && startLimitingPorts({ ...shared, findStrayPorts }, signal);
      if (cluster && key !== undefined && cluster_port) {
        cluster_work = startClusterWork({ ...dependencies, logs, cluster, cluster_port, key }, signal);
      }
      return [reconciling, ...metering, limiting_disk, limiting_ports, cluster_work].filter(
        (work) => work !== undefined,
      );
    },
  };
}

/** Returns the bytes of a key as text. */
function bytesOf({ k }: JWK): string {
  assert(k, 'a symmetric key has its bytes');
  return k;
}

function openPort({ database, builds }: Dependencies, cluster: Cluster, key: string): ClusterPort {
  return cluster.openPort({
    key,
    async findBuild(server_id) {
      const server = await store.selectServerById(database.queries, server_id);
      // The program of a running server has the token too, and could request its build all the time.
      if (!server || server.started_at !== null || server.ended_at !== null) return undefined;
      return await builds.ensureUnpacked({ game_id: server.game_id }, server.build_id);
    },
    async findBuildInUse(build_id) {
      const game_id = await store.selectGameOfBuildInUse(database.queries, build_id);
      return game_id === undefined ? undefined : await builds.ensureUnpacked({ game_id }, build_id);
    },
  });
}
