import type { Events } from '../../platform/events.ts';
import type { Feature } from '../../platform/feature.ts';
import { createGames, type Games, type GamesDependencies } from './games.ts';
import { startPlayerCounts } from './player-counts.ts';
import { gameRoutes } from './routes.ts';

interface Dependencies extends GamesDependencies {
  events: Events;
  /** Returns how many players have a seat, by game; games without any may be missing. */
  countPlayers(): Promise<ReadonlyMap<string, number>>;
}

/** Opens games, and the authorization of callers of a game. */
export function openGames(dependencies: Dependencies): Feature<Games> {
  const games = createGames(dependencies);
  return {
    api: games,
    routes: gameRoutes(games),
    startWork: (signal) => [startPlayerCounts(dependencies, signal)],
  };
}
