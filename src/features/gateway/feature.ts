import type { Feature } from '../../platform/feature.ts';
import type { Gateway } from '../../platform/http/gateway.ts';
import type { Watch } from '../../platform/watch/watch.ts';
import type { AddressOf } from '../port-names.ts';
import type { Servers } from '../servers/servers.ts';
import { type AddressesOptions, createAddressOf } from './addresses.ts';
import { type ConnectionCheckDependencies, startCheckingConnections } from './connection-checks.ts';
import { createDrain } from './drain.ts';
import { createGateway, type GatewayDependencies } from './gateway.ts';
import { createPresence, type PresenceDependencies } from './presence.ts';
import { type ReadinessDependencies, startReportingReady } from './readiness.ts';
import { createRelays, type Relays, type RelaysOptions } from './relays/relays.ts';
import { gatewayRoutes } from './routes.ts';
import { createTraffic, type Traffic, type TrafficOptions } from './traffic.ts';
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

type RelaysDependencies = Omit<RelaysOptions, 'traffic'> & TrafficOptions & AddressesOptions;

/** The parts of the gateway that game servers need before they start. */
interface OpenedRelays {
  relays: Relays;
  traffic: Traffic;
  addressOf: AddressOf;
}

/** Opens the relays of game servers, the count of what players exchange with them, and their public addresses. */
export function openRelays(dependencies: RelaysDependencies): OpenedRelays {
  const traffic = createTraffic(dependencies);
  const relays = createRelays({ ...dependencies, traffic });
  return { relays, traffic, addressOf: createAddressOf(dependencies) };
}

/** What is in progress in this process. */
type Counted = Pick<ReturnType<typeof createGateway>, 'count' | 'sockets_max'>;

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
        try {
          await presence.reportNow();
        } finally {
          await storing.store();
        }
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
