import type { Feature } from '../../platform/feature.ts';
import { createLogs, type LogsDependencies } from './logs.ts';
import { startMetering } from './metering.ts';
import { type ReconcileDependencies, startReconciling } from './reconcile.ts';
import { serverRoutes } from './routes.ts';
import { createServers, type Servers, type ServersDependencies } from './servers.ts';

type Dependencies = LogsDependencies & Omit<ServersDependencies & ReconcileDependencies, 'logs'>;

/** Opens game servers: their desired state, and the background work that starts and ends them on this machine. */
export function openServers(dependencies: Dependencies): Feature<Servers> {
  const { readUsage } = dependencies.runtime;
  const logs = createLogs(dependencies);
  const servers = createServers({ ...dependencies, logs });
  return {
    api: servers,
    routes: serverRoutes(servers),
    startWork(signal) {
      const reconciling = startReconciling({ ...dependencies, logs }, signal);
      const { listServers } = reconciling;
      return [reconciling, ...(readUsage ? [startMetering({ ...dependencies, readUsage, listServers }, signal)] : [])];
    },
  };
}
