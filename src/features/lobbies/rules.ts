import { freeDirectPlaces, freePlaces, hasTags, type OpenLobby, type Places, type Shelf } from './places.ts';
import type { NewLobby, Search } from './requests.ts';

const WARM_WAIT_MAX_MS = 60_000;

/** Somebody who wants a seat. */
export type SeatRequest = FindRequest | JoinRequest;

interface RequestBase {
  /** The seat that he is going to have. */
  player_id: string;
  game_id: string;
  namespace_id: string;
  address: string;
}

export interface FindRequest extends RequestBase {
  kind: 'find';
  version_id: string;
  search: Search;
}

export interface JoinRequest extends RequestBase {
  kind: 'join';
  lobby_id: string;
}

/** Who gets one of the first seats of a lobby. */
export type Founder = Pick<RequestBase, 'player_id' | 'address'>;

/** A lobby to be made, with those who get its first seats. */
export interface PlannedLobby {
  namespace_id: string;
  game_id: string;
  version_id: string;
  lobby: NewLobby;
  founders: Founder[];
  /** Of one that is made for nobody yet: only as long as there are fewer such lobbies than these. */
  idle_min?: number;
}

export type Refusal = 'MATCHMAKER_NO_AVAILABLE_LOBBIES' | 'MATCHMAKER_LOBBY_FULL' | 'MATCHMAKER_LOBBY_STOPPED';

/** What is proposed for a round of requests: seats in lobbies there are, lobbies to be made, and who gets nothing. */
export interface Plan {
  seats: { request: SeatRequest; lobby_id: string }[];
  new_lobbies: PlannedLobby[];
  refusals: { request: SeatRequest; code: Refusal }[];
}

/**
 * Decides who sits where, one request after the other: the fullest lobby that has a place and is in one of the game modes
 * and regions asked for; else one that is being made in this round; else a new one. Takes the seats in `placesOf`'s
 * answers as it gives them away, so that nobody after is offered the same. Depends on its arguments only.
 */
export function planSeats(requests: SeatRequest[], placesOf: (namespace_id: string) => Places): Plan {
  const plan: Plan = { seats: [], new_lobbies: [], refusals: [] };
  for (const request of requests) {
    const places = placesOf(request.namespace_id);
    if (request.kind === 'join') planJoin(request, places, plan);
    else planFind(request, places, plan);
  }
  return plan;
}

function planJoin(request: JoinRequest, places: Places, plan: Plan): void {
  const lobby = places.get(request.lobby_id);
  if (!lobby) return void plan.refusals.push({ request, code: 'MATCHMAKER_LOBBY_STOPPED' });
  if (freeDirectPlaces(lobby) < 1) return void plan.refusals.push({ request, code: 'MATCHMAKER_LOBBY_FULL' });
  places.take(lobby.lobby_id);
  plan.seats.push({ request, lobby_id: lobby.lobby_id });
}

function planFind(request: FindRequest, places: Places, plan: Plan): void {
  const lobby = findFullest(request, places);
  if (lobby) {
    places.take(lobby.lobby_id);
    plan.seats.push({ request, lobby_id: lobby.lobby_id });
    return;
  }
  const planned = plan.new_lobbies.find((candidate) => canFound(candidate, request));
  if (planned) return void planned.founders.push(request);
  const { creates } = request.search;
  if (!creates) return void plan.refusals.push({ request, code: 'MATCHMAKER_NO_AVAILABLE_LOBBIES' });
  const { namespace_id, game_id, version_id } = request;
  plan.new_lobbies.push({ namespace_id, game_id, version_id, lobby: creates, founders: [request] });
}

function findFullest({ version_id, search }: FindRequest, places: Places): OpenLobby | undefined {
  let fullest: OpenLobby | undefined;
  for (const region of search.regions) {
    for (const game_mode of search.game_modes) {
      const [candidate] = places.fullestFirst({ version_id, game_mode, region }, search.tags);
      if (candidate && (!fullest || freePlaces(candidate) < freePlaces(fullest))) fullest = candidate;
    }
  }
  return fullest;
}

/** Whether a lobby that is about to be made suits another request, and has room for it. */
function canFound(planned: PlannedLobby, { namespace_id, version_id, search }: FindRequest): boolean {
  const { lobby, founders } = planned;
  return (
    planned.namespace_id === namespace_id &&
    planned.version_id === version_id &&
    search.game_modes.includes(lobby.game_mode) &&
    search.regions.includes(lobby.region) &&
    hasTags(lobby, search.tags) &&
    founders.length < lobby.max_players_normal
  );
}

/** Of the empty lobbies of a namespace, longest empty first, those that are more than their place keeps. */
export function surplusLobbies<Lobby extends { game_mode: string; region: string }>(
  longest_empty_first: Lobby[],
  idleMax: (place: { game_mode: string; region: string }) => number,
): Lobby[] {
  const groups = Map.groupBy(longest_empty_first, ({ game_mode, region }) => `${game_mode} ${region}`);
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    const kept = first ? idleMax(first) : 0;
    return group.slice(0, Math.max(0, group.length - kept));
  });
}

/** Where lobbies are to be kept warm, and how many. */
export interface WantedShelf extends Shelf {
  namespace_id: string;
  min: number;
}

/** How many lobbies each shelf lacks. Where they ended by themselves, the next ones wait: 2 s, 4 s, to a minute. */
export function missingLobbies<Wanted extends WantedShelf>(
  wanted: Wanted[],
  idle: (Shelf & { namespace_id: string; count: number })[],
  failing: (Shelf & { namespace_id: string; failures: number; last_ts: Date })[],
  now: Date,
): { shelf: Wanted; count: number }[] {
  const nameOf = (shelf: Shelf & { namespace_id: string }) =>
    `${shelf.namespace_id} ${shelf.version_id} ${shelf.game_mode} ${shelf.region}`;
  const counts = new Map(idle.map((shelf) => [nameOf(shelf), shelf.count]));
  const failures = new Map(failing.map((shelf) => [nameOf(shelf), shelf]));
  return wanted.flatMap((shelf) => {
    const failed = failures.get(nameOf(shelf));
    const wait_ms = failed ? Math.min(WARM_WAIT_MAX_MS, 1_000 * 2 ** failed.failures) : 0;
    if (failed && now.getTime() < failed.last_ts.getTime() + wait_ms) return [];
    const count = shelf.min - (counts.get(nameOf(shelf)) ?? 0);
    return count > 0 ? [{ shelf, count }] : [];
  });
}

/** Of the lobbies that may be listed, those that are: empty ones only where their game mode has no other. */
export function listedLobbies<Lobby extends { game_mode: string; player_count: number }>(lobbies: Lobby[]): Lobby[] {
  const groups = Map.groupBy(lobbies, ({ game_mode }) => game_mode);
  return [...groups.values()].flatMap((group) => {
    const inhabited = group.filter(({ player_count }) => player_count > 0);
    return inhabited.length > 0 ? inhabited : group.slice(0, 1);
  });
}
