import type { AddressClass } from '../../../platform/address-classes.ts';
import type { NamespaceRow } from '../../namespaces/namespaces.ts';
import type { Considered } from '../receipts-wire.ts';
import { explain, isAwaited, toConsidered } from './candidates.ts';
import { admissionOf, freeDirectPlaces, freePlaces, hasTags, type OpenLobby, type Places } from './lobby-index.ts';
import { type Awaited, Line } from './queue-order.ts';
import type { NewLobby, Search } from './requests.ts';

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
  client: Client;
}

/** Whose players are counted together, and how many he may have in the namespace. */
export interface Client {
  name: string;
  players_max: number;
}

/** The limits of a namespace for its clients. */
export type ClientLimits = Pick<NamespaceRow, 'max_players_per_client' | `max_players_per_client_${AddressClass}`>;

/** How many players a client may have whose address is of some classes: by the lowest of the limits that are for him. */
export function playersMaxOf(limits: ClientLimits, classes: AddressClass[]): number {
  const own = classes.map((one) => limits[`max_players_per_client_${one}`]);
  return Math.min(limits.max_players_per_client, ...own);
}

export interface FindRequest extends RequestBase {
  kind: 'find';
  version_id: string;
  search: Search;
  /** Of one that waits for its turn. */
  ticket?: string;
  /** As many lobbies as the namespace may have, where that is known. */
  lobby_count_max?: number;
}

export interface JoinRequest extends RequestBase {
  kind: 'join';
  lobby_id: string;
}

/** Who gets one of the first seats of a lobby. */
export type Founder = Pick<RequestBase, 'player_id' | 'others' | 'address' | 'client'> & Pick<FindRequest, 'ticket'>;

/** Everybody of a request. */
export function membersOf({ player_id, others = [] }: Pick<RequestBase, 'player_id' | 'others'>): string[] {
  return [player_id, ...others];
}

const seatsOf = ({ others }: Pick<RequestBase, 'others'>): number => 1 + (others?.length ?? 0);

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

export type Refusal =
  | 'MATCHMAKER_NO_AVAILABLE_LOBBIES'
  | 'MATCHMAKER_LOBBY_FULL'
  | 'MATCHMAKER_LOBBY_STOPPED'
  | 'MATCHMAKER_TOO_MANY_LOBBIES';

/** What is proposed for a round of requests: seats in lobbies there are, lobbies to be made, and who gets nothing. */
export interface Plan {
  seats: { request: SeatRequest; lobby_id: string }[];
  new_lobbies: PlannedLobby[];
  refusals: { request: SeatRequest; code: Refusal }[];
  /** Those of whom it is to be seen what becomes of others first. */
  postponed: SeatRequest[];
  /** Of those that are explained: what was looked at, in order. */
  considered: Map<SeatRequest, Considered[]>;
}

/**
 * Decides who sits where, one request after the other, those first who wait for their turn: the fullest lobby that has a place and is in one of the game modes
 * and regions asked for; else one that is being made in this round; else a new one. Takes the seats in `placesOf`'s
 * answers as it gives them away, so that nobody after is offered the same. Depends on its arguments only.
 */
export function planSeats(requests: SeatRequest[], placesOf: (namespace_id: string) => Places): Plan {
  const plan: Plan = { seats: [], new_lobbies: [], refusals: [], postponed: [], considered: new Map() };
  const lineOf = openLines(placesOf);
  for (const request of inTurn(requests, lineOf)) {
    const places = placesOf(request.namespace_id);
    if (request.kind === 'join') planJoin(request, places, plan);
    else planFind(request, places, plan, lineOf(request));
  }
  return plan;
}

/** Where a request stands: joins stand with those who came last, and take nothing that anybody waits for. */
function placeOf(request: SeatRequest, line: Line | undefined): number {
  return line?.placeOf(request.kind === 'find' ? request : {}) ?? 0;
}

/** The lines of namespaces, each made once; undefined where nobody waits. */
function openLines(placesOf: (namespace_id: string) => Places): (request: SeatRequest) => Line | undefined {
  const lines = new Map<string, Line | undefined>();
  return ({ namespace_id }) => {
    if (lines.has(namespace_id)) return lines.get(namespace_id);
    const line = openLine(placesOf(namespace_id));
    lines.set(namespace_id, line);
    return line;
  };
}

const openLine = ({ queue }: Places): Line | undefined => (queue.length > 0 ? new Line(queue) : undefined);

/** Requests in the order in which they are decided: those that wait by their places, all others as they came. */
function inTurn(requests: SeatRequest[], lineOf: (request: SeatRequest) => Line | undefined): SeatRequest[] {
  if (requests.every((request) => lineOf(request) === undefined)) return requests;
  const placed = requests.map((request) => ({ request, place: placeOf(request, lineOf(request)) }));
  // Two who have no place differ by NaN, which is no difference.
  return placed.toSorted((one, other) => one.place - other.place || 0).map(({ request }) => request);
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

function planFind(request: FindRequest, places: Places, plan: Plan, line: Line | undefined): void {
  const place = line?.placeOf(request) ?? 0;
  const { lobby, is_unsure } = findFullest(request, places, line);
  if (request.is_explained) plan.considered.set(request, explain(request, places, line, lobby));
  if (lobby) {
    places.take(lobby.lobby_id, seatsOf(request));
    plan.seats.push({ request, lobby_id: lobby.lobby_id });
    line?.go(place, lobby.lobby_id);
    return;
  }
  const suiting = plan.new_lobbies.filter((candidate) => canFound(candidate, request));
  const awaited = suiting.map((made) => isFounded(made, place, line));
  const planned = suiting[awaited.indexOf('no')];
  if (planned) {
    planned.founders.push(request);
    line?.go(place, planned);
    return;
  }
  if (is_unsure || awaited.includes('moving')) return void plan.postponed.push(request);
  const { creates } = request.search;
  if (!creates) return void plan.refusals.push({ request, code: 'MATCHMAKER_NO_AVAILABLE_LOBBIES' });
  const { namespace_id, game_id, version_id, lobby_count_max = Number.POSITIVE_INFINITY } = request;
  const planned_there = plan.new_lobbies.filter((other) => other.namespace_id === namespace_id).length;
  if (line?.hasBefore(place) || places.size + planned_there >= lobby_count_max) {
    return void plan.refusals.push({ request, code: 'MATCHMAKER_TOO_MANY_LOBBIES' });
  }
  const made = { namespace_id, game_id, version_id, lobby: creates, founders: [request] };
  plan.new_lobbies.push(made);
  line?.go(place, made);
}

/** The same of a lobby that is to be made. */
function isFounded(made: PlannedLobby, place: number, line: Line | undefined): Awaited {
  return line?.isAwaited({ ...made.lobby, version_id: made.version_id }, made, place) ?? 'no';
}

/** Where a find would be seated at this moment. */
export function findSeat(request: SeatSeeker, places: Places): OpenLobby | undefined {
  return findFullest(request, places, openLine(places)).lobby;
}

type SeatSeeker = Pick<FindRequest, 'version_id' | 'search' | 'player_id' | 'others' | 'ticket'>;

/** The fullest lobby; `is_unsure`: whether there may be one when those sit who are going to sit elsewhere. */
function findFullest(
  request: SeatSeeker,
  places: Places,
  line: Line | undefined,
): { lobby: OpenLobby | undefined; is_unsure: boolean } {
  const { version_id, search } = request;
  const seats = seatsOf(request);
  const freeFor = (lobby: OpenLobby) => freePlaces(lobby, admissionOf(seats));
  let lobby: OpenLobby | undefined;
  let is_unsure = false;
  for (const region of search.regions) {
    for (const game_mode of search.game_modes) {
      for (const candidate of places.fullestFirst({ version_id, game_mode, region }, search.tags, seats)) {
        const awaited = isAwaited(candidate, request, line);
        if (awaited === 'moving') is_unsure = true;
        if (awaited !== 'no') continue;
        if (!lobby || freeFor(candidate) < freeFor(lobby)) lobby = candidate;
        break;
      }
    }
  }
  return { lobby, is_unsure };
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
