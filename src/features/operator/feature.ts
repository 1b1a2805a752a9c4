import { hostname } from 'node:os';
import type { Feature } from '../../platform/feature.ts';
import type { Transfers } from '../../platform/http/transfers.ts';
import { VERSION } from '../../platform/version.ts';
import type { Counters } from '../counters/counters.ts';
import type { Games } from '../games/games.ts';
import type { Identities } from '../identities/identities.ts';
import type { Lobbies } from '../lobbies/lobbies.ts';
import type { Machines } from '../machines/machines.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import type { Servers } from '../servers/servers.ts';
import { createOperator, type Operator, type OperatorDependencies } from './operator.ts';
import { operatorRoutes } from './routes.ts';

interface Dependencies extends Pick<OperatorDependencies, 'database' | 'clock' | 'certificates' | 'servers_max'> {
  kept_events: OperatorDependencies['events'];
  node_id: string;
  identities: Pick<Identities, 'requireAdministrator'>;
  namespaces: Pick<Namespaces, 'find'>;
  games: Pick<Games, 'get'>;
  machines: Pick<Machines, 'heldIds'>;
  servers: Pick<Servers, 'countByMachine' | 'countByStatusOn'>;
  lobbies: Pick<Lobbies, 'queue' | 'countByMachine'>;
  counters: Pick<Counters, 'totals'>;
  gateway: { count(): { requests: number; sockets: number }; sockets_max: number };
  /** Maximum number of concurrent requests to game servers. */
  requests_max: number;
  relays: { count(): number; count_max: number };
  transfers: Pick<Transfers, 'count'>;
  transfers_max: number;
}

/** Opens what administrators see of the service. */
export function openOperator(dependencies: Dependencies): Feature<Operator> {
  const { kept_events, node_id, identities, namespaces, games, machines, servers, lobbies, counters } = dependencies;
  const { gateway, requests_max, relays, transfers, transfers_max } = dependencies;
  const operator = createOperator({
    ...dependencies,
    events: kept_events,
    own: { machine_id: node_id, host: hostname(), version: VERSION },
    requireAdministrator: (caller) => identities.requireAdministrator(caller),
    async countServers() {
      const counts = await servers.countByMachine();
      return machines.heldIds().reduce((sum, id) => sum + (counts.get(id) ?? 0), 0);
    },
    countWaiting: () => lobbies.queue.lengths(),
    readSeatTotals: counters.totals,
    async countHeld() {
      const held = machines.heldIds();
      const [of_machines, by_machine] = await Promise.all([servers.countByStatusOn(held), lobbies.countByMachine()]);
      const sum = (count: 'lobbies' | 'players') =>
        held.reduce((total, id) => total + (by_machine.get(id)?.[count] ?? 0), 0);
      return { servers: of_machines, lobbies: sum('lobbies'), players: sum('players') };
    },
    async namesOf(namespace_id) {
      const namespace = await namespaces.find(namespace_id);
      const game = namespace && (await games.get(namespace.game_id));
      return game && { game_id: game.game_id, game_name_id: game.name_id, namespace_name_id: namespace.name_id };
    },
    readLimits() {
      const { requests, sockets } = gateway.count();
      return [
        { name: 'gateway_requests', used: requests, max: requests_max },
        { name: 'gateway_sockets', used: sockets, max: gateway.sockets_max },
        { name: 'relayed_connections', used: relays.count(), max: relays.count_max },
        { name: 'transfers', used: transfers.count(), max: transfers_max },
      ];
    },
  });
  return { api: operator, routes: operatorRoutes(operator), startWork: (signal) => [operator.startWork(signal)] };
}
