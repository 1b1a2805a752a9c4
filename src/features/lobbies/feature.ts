import type { Feature } from '../../platform/feature.ts';
import type { Loop } from '../../platform/loop.ts';
import type { Machines } from '../machines/machines.ts';
import { lobbyCloudRoutes } from './developers/cloud-routes.ts';
import { lobbyGameServerRoutes } from './game-server-routes.ts';
import { createLobbiesApi, type Lobbies, type LobbiesDependencies } from './lobbies.ts';
import { queueRoutes } from './matchmaking/queue/queue-routes.ts';
import { trialRoutes } from './matchmaking/trials/trial-routes.ts';
import { lobbyRoutes } from './routes.ts';
import { createAbandonedSeats } from './upkeep/abandoned-seats.ts';
import { createAvoidedLobbies } from './upkeep/avoided-lobbies.ts';
import { type ReconcileDependencies, startReconciling } from './upkeep/reconcile.ts';

interface LobbySettings {
  /** Time for a new lobby to become ready. */
  ready_timeout_ms: number;
  /** Time for a player to connect. */
  seat_timeout_ms: number;
  /** Time after which a player is removed even if no disconnect was reported. */
  player_timeout_ms: number;
  /** Time limit of a request, including the wait for a lobby. */
  request_timeout_ms: number;
  receipts_per_second_max: number;
}

/** The dependencies that the feature creates itself. */
type OwnParts = 'avoided' | 'abandoned_seats';

type Dependencies = Omit<LobbiesDependencies, 'onSeatsFreed' | 'onCreated' | OwnParts | keyof LobbySettings> &
  Omit<ReconcileDependencies, OwnParts> &
  LobbySettings & { machines: Machines };

/** Creates the feature of lobbies and their matchmaker: its API, routes and background work. */
export function openLobbies(dependencies: Dependencies): Feature<Lobbies> {
  let reconciling: Pick<Loop, 'wake'> | undefined;
  const wake = () => reconciling?.wake();
  const avoided = createAvoidedLobbies(dependencies);
  const abandoned_seats = createAbandonedSeats(dependencies);
  const lobbies = createLobbiesApi({ ...dependencies, avoided, abandoned_seats, onSeatsFreed: wake, onCreated: wake });
  return {
    api: lobbies,
    routes: [
      ...lobbyRoutes(lobbies),
      ...lobbyGameServerRoutes(lobbies),
      ...queueRoutes(lobbies),
      ...lobbyCloudRoutes(lobbies, dependencies.servers),
      ...trialRoutes(lobbies),
    ],
    startWork(signal) {
      const loop = startReconciling({ ...dependencies, avoided, abandoned_seats }, signal);
      reconciling = loop;
      return [loop, lobbies.receipts.startWork(signal), lobbies.queue.startWork(signal)];
    },
  };
}
