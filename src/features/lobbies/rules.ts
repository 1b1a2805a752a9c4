import {
  admissionOf,
  freeDirectPlaces,
  freePlaces,
  hasTags,
  type OpenLobby,
  type Places,
  type Shelf,
} from './places.ts';
import type { Considered } from './receipts-wire.ts';
import type { NewLobby, Search } from './requests.ts';

const WARM_WAIT_MAX_MS = 60_000;
/** Lobbies that a receipt names. */
const CONSIDERED_MAX = 16;

/** Somebody who wants a seat. */
export type SeatRequest = FindRequest | JoinRequest;

interface RequestBase {
  /** The seat that he is going to have. */
  player_id: string;
  /** Those who come with him: all of them get seats in one lobby, or nobody does. */
  others?: readonly string[];
  /** Whether the plan is to say which lobbies were looked at, and why they were passed over. */
  is_explained?: boolean;
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
export type Founder = Pick<RequestBase, 'player_id' | 'others' | 'address'>;

/** Everybody of a request. */
export function membersOf({ player_id, others = [] }: Pick<RequestBase, 'player_id' | 'others'>): string[] {
  return [player_id, ...others];
}

const seatsOf = (request: Pick<RequestBase, 'player_id' | 'others'>): number => membersOf(request).length;

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
  /** Of those that are explained: what was looked at, in order. */
  considered: Map<SeatRequest, Considered[]>;
}

/**
 * Decides who sits where, one request after the other: the fullest lobby that has a place and is in one of the game modes
 * and regions asked for; else one that is being made in this round; else a new one. Takes the seats in `placesOf`'s
 * answers as it gives them away, so that nobody after is offered the same. Depends on its arguments only.
 */
export function planSeats(requests: SeatRequest[], placesOf: (namespace_id: string) => Places): Plan {
  const plan: Plan = { seats: [], new_lobbies: [], refusals: [], considered: new Map() };
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
  const seats = seatsOf(request);
  const is_full = freeDirectPlaces(lobby) < seats;
  if (request.is_explained) plan.considered.set(request, [toConsidered(lobby, is_full ? 'full' : undefined)]);
  if (is_full) return void plan.refusals.push({ request, code: 'MATCHMAKER_LOBBY_FULL' });
  places.take(lobby.lobby_id, seats);
  plan.seats.push({ request, lobby_id: lobby.lobby_id });
}

function planFind(request: FindRequest, places: Places, plan: Plan): void {
  const lobby = findFullest(request, places);
  if (request.is_explained) plan.considered.set(request, explain(request, places, lobby));
  if (lobby) {
    places.take(lobby.lobby_id, seatsOf(request));
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

function findFullest(request: FindRequest, places: Places): OpenLobby | undefined {
  const { version_id, search } = request;
  const seats = seatsOf(request);
  const freeFor = (lobby: OpenLobby) => freePlaces(lobby, admissionOf(seats));
  let fullest: OpenLobby | undefined;
  for (const region of search.regions) {
    for (const game_mode of search.game_modes) {
      const [candidate] = places.fullestFirst({ version_id, game_mode, region }, search.tags, seats);
      if (candidate && (!fullest || freeFor(candidate) < freeFor(fullest))) fullest = candidate;
    }
  }
  return fullest;
}

/** The lobbies that a find might have come to, the chosen one first, each other with the one reason it was passed over. */
function explain(request: FindRequest, places: Places, chosen: OpenLobby | undefined): Considered[] {
  const { version_id, search } = request;
  const considered: Considered[] = chosen ? [toConsidered(chosen, undefined)] : [];
  for (const region of search.regions) {
    for (const game_mode of search.game_modes) {
      for (const lobby of places.allOf({ version_id, game_mode, region })) {
        if (considered.length === CONSIDERED_MAX) return considered;
        if (lobby !== chosen) considered.push(toConsidered(lobby, reasonAgainst(lobby, request)));
      }
    }
  }
  return considered;
}

function reasonAgainst(lobby: OpenLobby, request: FindRequest): NonNullable<Considered['passed_over']> {
  const seats = seatsOf(request);
  if (lobby.is_closed) return 'closed';
  if (lobby.publicity === 'private') return 'private';
  if (freePlaces(lobby, admissionOf(seats)) < seats) return 'full';
  return hasTags(lobby, request.search.tags) ? 'less_full' : 'tags';
}

function toConsidered(lobby: OpenLobby, passed_over: Considered['passed_over']): Considered {
  const { lobby_id, game_mode, region, player_count } = lobby;
  const seen = { lobby_id, game_mode_id: game_mode, region_id: region, player_count };
  return passed_over === undefined ? seen : { ...seen, passed_over };
}

/** Whether a lobby that is about to be made suits another request, and has room for it. */
function canFound(planned: PlannedLobby, request: FindRequest): boolean {
  const { namespace_id, version_id, search } = request;
  const { lobby, founders } = planned;
  const player_count = founders.reduce((count, founder) => count + seatsOf(founder), 0);
  const seats = seatsOf(request);
  return (
    planned.namespace_id === namespace_id &&
    planned.version_id === version_id &&
    search.game_modes.includes(lobby.game_mode) &&
    search.regions.includes(lobby.region) &&
    hasTags(lobby, search.tags) &&
    player_count + seats <= (seats > 1 ? lobby.max_players_party : lobby.max_players_normal)
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
