import type { Feature } from '../../platform/feature.ts';
import type { Gateway } from '../../platform/http/gateway.ts';
import type { Watch } from '../../platform/watch/watch.ts';
import type { Servers } from '../servers/servers.ts';
import { type ConnectionCheckDependencies, startCheckingConnections } from './connection-checks.ts';
import { createDrain } from './drain.ts';
import { createGateway, type GatewayDependencies } from './gateway.ts';
import { createPresence, type PresenceDependencies } from './presence.ts';
import { type ReadinessDependencies, startReportingReady } from './readiness.ts';
import type { Relays } from './relays/relays.ts';
import { gatewayRoutes } from './routes.ts';
import { createTrafficStoring } from './traffic-storing.ts';

type Dependencies = Omit<GatewayDependencies, 'presence' | 'subscribe' | 'servers'> &
  PresenceDependencies &
  Omit<ReadinessDependencies, 'subscribe' | 'servers'> &
  Omit<ConnectionCheckDependencies, 'subscribe' | 'presence'> & {
    watch: Watch;
    servers: Servers;
    relays: Pick<Relays, 'count'>;
    drain_ms: number;
  };

type Counted = Pick<ReturnType<typeof createGateway>, 'count'>;

/** Opens the gateway, and the work that reports players and ready lobbies for game servers that do not report them. */
export function openGateway(dependencies: Dependencies): Feature<Gateway & Counted & AsyncDisposable> {
  const { servers, relays, drain_ms, events } = dependencies;
  const { subscribe } = dependencies.watch;
  const presence = createPresence(dependencies);
  const { sockets, ...gateway } = createGateway({ ...dependencies, subscribe, presence });
  const storing = createTrafficStoring(dependencies);
  const drain = createDrain({ events, drain_ms, count: () => sockets.count() + relays.count() });
  return {
    api: {
      ...gateway,
      drain,
      async [Symbol.asyncDispose]() {
        gateway[Symbol.dispose]();
        await presence.reportNow();
        await storing.store();
      },
    },
    routes: gatewayRoutes({ servers, traffic: storing }),
    startWork: (signal) => [
      presence.startReporting(signal),
      startReportingReady({ ...dependencies, subscribe }, signal),
      startCheckingConnections({ ...dependencies, subscribe, presence }, sockets, signal),
      storing.startStoring(signal),
    ],
  };
}
