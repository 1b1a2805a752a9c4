import type { LobbyIndex, RunningLobby } from '../../../src/features/lobbies/matchmaking/lobby-cache/lobby-index.ts';
import type { PlannedLobby } from '../../../src/features/lobbies/matchmaking/rounds/planner.ts';
import {
  countSeats,
  type FindRequest,
  type SeatRequest,
} from '../../../src/features/lobbies/matchmaking/rounds/seat-requests.ts';
import type { Chance } from '../matchmaker/chance.ts';
import { freeSeats, fullest, isReserved, suits } from '../matchmaker/matchmaking-rules.ts';
import type { LobbyState } from '../matchmaker/matchmaking-state.ts';
import { arrivalOf, type SimulatedNamespace } from '../matchmaker/simulated-namespace.ts';
import { searchOf } from '../matchmaker/simulated-queue.ts';

export const MODES = ['red', 'blue'];
export const REGIONS = ['here', 'there'];
const MAXIMA: Record<string, Pick<RunningLobby, 'max_players_normal' | 'max_players_direct' | 'max_players_party'>> = {
  red: { max_players_normal: 2, max_players_direct: 4, max_players_party: 5 },
  blue: { max_players_normal: 4, max_players_direct: 2, max_players_party: 3 },
};

export function newLobby(
  game_mode: string,
  region: string,
  tags: Record<string, string>,
  publicity: RunningLobby['publicity'],
): PlannedLobby['lobby'] {
  const maxima = MAXIMA[game_mode] ?? { max_players_normal: 1, max_players_direct: 1, max_players_party: 1 };
  return { game_mode, region, tags, ...maxima, publicity, lobby_config: undefined };
}

export function ifDefined<Item>(item: Item | undefined, work: (item: Item) => void): void {
  if (item !== undefined) work(item);
}

/** Returns the row of a lobby, as a process reads it. A row does not change after it was read. */
export function rowOf({ lobby_id, version, game_mode, region, tags, publicity, ...lobby }: LobbyState): RunningLobby {
  const { normal, direct, party } = lobby.maxima;
  return {
    lobby_id,
    version_id: version,
    game_mode,
    region,
    tags,
    publicity,
    is_closed: lobby.is_closed,
    max_players_normal: normal,
    max_players_direct: direct,
    max_players_party: party,
    player_count: lobby.seated.size,
  };
}

export function drawSearch(chance: Chance): FindRequest['search'] {
  const game_mode = chance.pick(MODES);
  const region = chance.pick(REGIONS);
  const tags: Record<string, string> = chance.oneIn(4) ? { color: chance.pick(MODES) } : {};
  const created = newLobby(game_mode, region, tags, null);
  return {
    game_modes: chance.oneIn(3) ? MODES : [game_mode],
    regions: chance.oneIn(3) ? REGIONS : [region],
    tags,
    new_lobby: chance.oneIn(4) ? undefined : created,
  };
}

/** Returns the free seats of the lobby that a find must get by the rules; undefined if it gets none, or for a join. */
export function fewestFree(
  namespace: SimulatedNamespace,
  index: LobbyIndex,
  request: SeatRequest | undefined,
): number | undefined {
  if (request?.kind !== 'find') return undefined;
  // Only a process whose seats were refused there knows that the server is ending.
  const known = namespace.running().filter(({ lobby_id }) => index.get(lobby_id));
  const earlier = namespace.queue.before(namespace.queue.placeOf(request));
  const open = known.filter((lobby) => suits(lobby, searchOf(request)) && !isReserved(lobby, earlier));
  const [chosen] = fullest(open, countSeats(request));
  return chosen && freeSeats(chosen, arrivalOf(request));
}
