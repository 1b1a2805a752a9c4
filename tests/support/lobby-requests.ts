import type { LobbyIndex, OpenLobby } from '../../src/features/lobbies/matchmaking/lobby-index.ts';
import type { PlannedLobby } from '../../src/features/lobbies/matchmaking/planner.ts';
import {
  type FindRequest,
  playerIdsOf,
  type SeatRequest,
} from '../../src/features/lobbies/matchmaking/seat-requests.ts';
import type { Chance } from './chance.ts';
import { isAwaited } from './lobby-line.ts';
import { type LobbyWorld, maximumFor, type WorldLobby } from './lobby-world.ts';

export const MODES = ['red', 'blue'];
export const REGIONS = ['here', 'there'];
const MAXIMA: Record<string, Pick<OpenLobby, 'max_players_normal' | 'max_players_direct' | 'max_players_party'>> = {
  red: { max_players_normal: 3, max_players_direct: 4, max_players_party: 5 },
  blue: { max_players_normal: 4, max_players_direct: 2, max_players_party: 3 },
};

export function newLobby(
  game_mode: string,
  region: string,
  tags: Record<string, string>,
  publicity: OpenLobby['publicity'],
): PlannedLobby['lobby'] {
  const maxima = MAXIMA[game_mode] ?? { max_players_normal: 1, max_players_direct: 1, max_players_party: 1 };
  return { game_mode, region, tags, ...maxima, publicity, lobby_config: undefined };
}

export function withSome<Item>(item: Item | undefined, work: (item: Item) => void): void {
  if (item !== undefined) work(item);
}

/** Rows do not change after they were read. */
export const asRow = (lobby: WorldLobby): OpenLobby => ({ ...lobby });

export const freeFor = (lobby: OpenLobby, request: SeatRequest) => maximumFor(lobby, request) - lobby.player_count;

export function suits(lobby: WorldLobby, { version_id, search }: FindRequest): boolean {
  const is_open = !lobby.is_closed && lobby.publicity !== 'private' && lobby.version_id === version_id;
  const { game_modes, regions, tags } = search;
  const has_tags = Object.entries(tags).every(([name, value]) => lobby.tags[name] === value);
  return is_open && game_modes.includes(lobby.game_mode) && regions.includes(lobby.region) && has_tags;
}

export function drawSearch(chance: Chance): FindRequest['search'] {
  const game_mode = chance.pick(MODES);
  const region = chance.pick(REGIONS);
  const tags: Record<string, string> = chance.oneIn(4) ? { color: chance.pick(MODES) } : {};
  const made = newLobby(game_mode, region, tags, null);
  return {
    game_modes: chance.oneIn(3) ? MODES : [game_mode],
    regions: chance.oneIn(3) ? REGIONS : [region],
    tags,
    creates: chance.oneIn(4) ? undefined : made,
  };
}

/** The fewest index that are free where a find may come to; undefined when it may come nowhere. */
export function leastFree(world: LobbyWorld, index: LobbyIndex, request: SeatRequest | undefined): number | undefined {
  if (request?.kind !== 'find') return undefined;
  // What nobody has noticed yet, that a server is to end, is known only to whom it cost a seat.
  const known = [...world.running.values()].filter((lobby) => index.get(lobby.lobby_id));
  const before = world.line.before(world.line.placeOf(request), []);
  const open = known.filter((lobby) => suits(lobby, request) && !isAwaited(lobby, before));
  const free = open.map((lobby) => freeFor(lobby, request));
  const enough = free.filter((count) => count >= playerIdsOf(request).length);
  return enough.length === 0 ? undefined : Math.min(...enough);
}
