import { bulkhead, type IPolicy, wrap } from 'cockatiel';
import { LRUCache } from 'lru-cache';

/** Games whose turns are remembered; each takes a few hundred bytes. */
const GAMES_MAX = 1_000;

/** Limits of work that runs concurrently. */
export interface TurnLimits {
  at_once_max: number;
  /** Less than `at_once_max`, so work of one game that takes long does not delay that of others. */
  at_once_per_game_max: number;
}

/** Runs work when it is its turn. */
export type TakeTurn = <Result>(game_id: string, work: () => Promise<Result>) => Promise<Result>;

/**
 * Returns a function that runs work in fair turns: that of one game takes only some of the turns. Its callers must limit
 * what waits.
 */
export function createGameTurns({ at_once_max, at_once_per_game_max }: TurnLimits): TakeTurn {
  const all = bulkhead(at_once_max, Number.POSITIVE_INFINITY);
  const games = new LRUCache<string, IPolicy>({ max: GAMES_MAX });
  return (game_id, work) => {
    const of_game = games.get(game_id) ?? bulkhead(at_once_per_game_max, Number.POSITIVE_INFINITY);
    games.set(game_id, of_game);
    return wrap(of_game, all).execute(work);
  };
}
