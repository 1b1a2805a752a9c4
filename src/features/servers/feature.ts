import type { Feature } from '../../platform/feature.ts';
import type { AddressOf } from '../port-names.ts';
import { startLimitingDisk } from './disk-limit.ts';
import { createLogs, type LogsDependencies } from './logs.ts';
import { startMetering } from './metering.ts';
import { type ReconcileDependencies, startReconciling } from './reconcile.ts';
import { serverRoutes } from './routes.ts';
import type { DiskUse } from './runtimes/runtime.ts';
import { createServers, type Servers, type ServersDependencies } from './servers.ts';

type Dependencies = LogsDependencies &
  Omit<ServersDependencies & ReconcileDependencies, 'logs'> & {
    addressOf: AddressOf;
    /** The most that a server may have on the disk; undefined for no limit. */
    disk_max: DiskUse | undefined;
  };

/** Opens game servers: their desired state, and the background work that starts and ends them on this machine. */
export function openServers(dependencies: Dependencies): Feature<Servers> {
  const { disk_max } = dependencies;
  const { readUsage, measureDisk } = dependencies.runtime;
  const logs = createLogs(dependencies);
  const servers = createServers({ ...dependencies, logs });
  return {
    api: servers,
    routes: serverRoutes(servers, dependencies.addressOf),
    startWork(signal) {
      const reconciling = startReconciling({ ...dependencies, logs }, signal);
      const { listServers } = reconciling;
      const observed = { ...dependencies, listServers };
      const metering = readUsage ? startMetering({ ...observed, readUsage }, signal) : [];
      const limiting = measureDisk && disk_max && startLimitingDisk({ ...observed, measureDisk, disk_max }, signal);
      return [reconciling, ...metering, limiting].filter((work) => work !== undefined);
    },
  };
}
