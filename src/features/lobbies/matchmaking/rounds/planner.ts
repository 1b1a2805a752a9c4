import {
  freeDirectSeats,
  freeSeats,
  hasTags,
  type LobbyIndex,
  type RunningLobby,
  toGroupSize,
} from '../lobby-cache/lobby-index.ts';
import { QueueOrder } from '../queue/queue-order.ts';
import type { Candidate } from '../receipts/receipts-wire.ts';
import type { NewLobby } from '../request-checks.ts';
import { listCandidates, reservationAgainst, toCandidate } from './candidates.ts';
import {
  countSeats,
  type FindRequest,
  type FirstRequest,
  type JoinRequest,
  type SeatRequest,
} from './seat-requests.ts';

/** A lobby to be created, with the requests that get its first seats. */
export interface PlannedLobby {
  namespace_id: string;
  game_id: string;
  version_id: string;
  lobby: NewLobby;
  /** The requests that get the first seats; the first one creates the lobby. Empty for a warm lobby. */
  first_requests: FirstRequest[];
  /** Set for a warm lobby, which is created only while its pool has fewer warm lobbies than this. */
  warm_min?: number;
}

export type Refusal =
  | 'MATCHMAKER_NO_AVAILABLE_LOBBIES'
  | 'MATCHMAKER_LOBBY_FULL'
  | 'MATCHMAKER_LOBBY_STOPPED'
  | 'MATCHMAKER_TOO_MANY_LOBBIES';

/** A request that gets its seats in a running lobby. */
export interface Assignment {
  request: SeatRequest;
  lobby_id: string;
}

/** The plan of a round. Each request is in one of the first four lists. */
export interface Plan {
  /** Requests that get seats in running lobbies. */
  assignments: Assignment[];
  new_lobbies: PlannedLobby[];
  refusals: { request: SeatRequest; code: Refusal }[];
  /**
   * Requests to decide again after this round's commit, for example because the seat of an earlier waiting find may be
   * free then.
   */
  postponed: SeatRequest[];
  /** The candidates of each explained request, in order. */
  candidates: Map<SeatRequest, Candidate[]>;
}

/**
 * Plans requests one after another, those from the queue first. A find gets a seat in the fullest lobby of its game modes
 * and regions, or else in a new lobby that the plan has for an earlier request, or else in one more new lobby. Counts the planned seats as taken in the
 * indexes, so that no later request gets them. `assigned`: seats that an earlier plan of the same round has given. They are
 * not committed yet, so their finds are still in the queue.
 */
export function planSeats(
  requests: SeatRequest[],
  indexOf: (namespace_id: string) => LobbyIndex,
  assigned: Assignment[] = [],
): Plan {
  const plan: Plan = { assignments: [], new_lobbies: [], refusals: [], postponed: [], candidates: new Map() };
  const orderOf = openQueueOrders(indexOf);
  for (const { request, lobby_id } of assigned) {
    const order = orderOf(request);
    order?.assign(placeOf(request, order), lobby_id);
  }
  for (const request of inQueueOrder(requests, orderOf)) {
    const index = indexOf(request.namespace_id);
    const code =
      request.kind === 'join' ? planJoin(request, index, plan) : planFind(request, index, plan, orderOf(request));
    if (code !== undefined) plan.refusals.push({ request, code });
  }
  return plan;
}

/** Returns a function that gives the queue order of a request's namespace, or undefined if no find waits there. */
function openQueueOrders(
  indexOf: (namespace_id: string) => LobbyIndex,
): (request: SeatRequest) => QueueOrder | undefined {
  const orders = new Map<string, QueueOrder | undefined>();
  return ({ namespace_id }) => {
    if (orders.has(namespace_id)) return orders.get(namespace_id);
    const order = openQueueOrder(indexOf(namespace_id));
    orders.set(namespace_id, order);
    return order;
  };
}

const openQueueOrder = ({ queue }: LobbyIndex): QueueOrder | undefined =>
  queue.length > 0 ? new QueueOrder(queue) : undefined;

/** Sorts requests into the order in which they are planned: waiting finds by their place, then all others in their order. */
function inQueueOrder(
  requests: SeatRequest[],
  orderOf: (request: SeatRequest) => QueueOrder | undefined,
): SeatRequest[] {
  if (requests.every((request) => orderOf(request) === undefined)) return requests;
  const placed = requests.map((request) => ({ request, place: placeOf(request, orderOf(request)) }));
  // Infinity minus Infinity is NaN, so two requests without a place count as equal.
  return placed.toSorted((one, other) => one.place - other.place || 0).map(({ request }) => request);
}

/**
 * Returns the place of a request in the queue. Joins, and finds that are not in the queue, come after all others; 0 for
 * every request if no find waits.
 */
function placeOf(request: SeatRequest, order: QueueOrder | undefined): number {
  return order?.placeOf(request.kind === 'find' ? request : {}) ?? 0;
}

/** Plans a join. Returns the code with which it is refused, if it is. */
function planJoin(request: JoinRequest, index: LobbyIndex, plan: Plan): Refusal | undefined {
  const lobby = index.get(request.lobby_id);
  if (!lobby) return 'MATCHMAKER_LOBBY_STOPPED';
  const seats = countSeats(request);
  const is_full = freeDirectSeats(lobby) < seats;
  if (request.is_explained) plan.candidates.set(request, [toCandidate(lobby, is_full ? 'full' : undefined)]);
  if (is_full) return 'MATCHMAKER_LOBBY_FULL';
  index.countPlanned(lobby.lobby_id, seats);
  plan.assignments.push({ request, lobby_id: lobby.lobby_id });
  return undefined;
}

/** Plans a find. Returns the code with which it is refused, if it is. */
function planFind(
  request: FindRequest,
  index: LobbyIndex,
  plan: Plan,
  order: QueueOrder | undefined,
): Refusal | undefined {
  const place = placeOf(request, order);
  const seats = countSeats(request);
  const running = findFullest(request, seats, index, order);
  if (request.is_explained) plan.candidates.set(request, listCandidates(request, index, order, lobbyOf(running)));
  if (running.is === 'found') {
    const { lobby_id } = running.lobby;
    index.countPlanned(lobby_id, seats);
    plan.assignments.push({ request, lobby_id });
    order?.assign(place, lobby_id);
    return undefined;
  }
  const planned = findPlanned(request, plan, order, place);
  if (planned.is === 'found') {
    planned.lobby.first_requests.push(request);
    order?.assign(place, planned.lobby);
    return undefined;
  }
  if (running.is === 'perhaps_later' || planned.is === 'perhaps_later') {
    plan.postponed.push(request);
    return undefined;
  }
  const { new_lobby } = request.search;
  if (!new_lobby) return 'MATCHMAKER_NO_AVAILABLE_LOBBIES';
  const { namespace_id, game_id, version_id, lobby_count_max = Number.POSITIVE_INFINITY } = request;
  const lobby_count = index.size + plan.new_lobbies.filter((other) => other.namespace_id === namespace_id).length;
  if (order?.hasUnassignedBefore(place) || lobby_count >= lobby_count_max) return 'MATCHMAKER_TOO_MANY_LOBBIES';
  const created = { namespace_id, game_id, version_id, lobby: new_lobby, first_requests: [request] };
  plan.new_lobbies.push(created);
  order?.assign(place, created);
  return undefined;
}

/** What a find wants of a running lobby. */
type LobbySeeker = Pick<FindRequest, 'version_id' | 'search' | 'ticket'>;

/** Returns the running lobby in which a find would get its seats now. */
export function findLobby(seeker: LobbySeeker, seats: number, index: LobbyIndex): RunningLobby | undefined {
  return lobbyOf(findFullest(seeker, seats, index, openQueueOrder(index)));
}

function lobbyOf(choice: LobbyChoice<RunningLobby>): RunningLobby | undefined {
  return choice.is === 'found' ? choice.lobby : undefined;
}

/**
 * The lobby of a find. `perhaps_later`: the round seats in other lobbies the finds that a lobby is reserved for, so it may
 * have room afterwards.
 */
type LobbyChoice<Lobby> = { is: 'found'; lobby: Lobby } | { is: 'perhaps_later' } | { is: 'none' };

const PERHAPS_LATER = { is: 'perhaps_later' } as const;
const NONE = { is: 'none' } as const;

function findFullest(
  seeker: LobbySeeker,
  seats: number,
  index: LobbyIndex,
  order: QueueOrder | undefined,
): LobbyChoice<RunningLobby> {
  const { version_id, search } = seeker;
  const freeFor = (lobby: RunningLobby) => freeSeats(lobby, toGroupSize(seats));
  let lobby: RunningLobby | undefined;
  let has_reassigned = false;
  for (const region of search.regions) {
    for (const game_mode of search.game_modes) {
      for (const candidate of index.fullestFirst({ version_id, game_mode, region }, search.tags, seats)) {
        const reservation = reservationAgainst(seeker, candidate, order);
        if (reservation === 'reassigned') has_reassigned = true;
        const is_unreserved = reservation === 'none';
        if (is_unreserved && (!lobby || freeFor(candidate) < freeFor(lobby))) lobby = candidate;
        if (is_unreserved || order?.is_at_maximum) break;
      }
    }
  }
  if (lobby) return { is: 'found', lobby };
  return has_reassigned ? PERHAPS_LATER : NONE;
}

/** Finds a lobby that the plan creates for an earlier request, and that has room for this one. */
function findPlanned(
  request: FindRequest,
  plan: Plan,
  order: QueueOrder | undefined,
  place: number,
): LobbyChoice<PlannedLobby> {
  let has_reassigned = false;
  for (const planned of plan.new_lobbies) {
    if (!hasRoomFor(planned, request)) continue;
    const lobby = { ...planned.lobby, version_id: planned.version_id };
    const reservation = order?.reservationBefore(place, lobby, planned) ?? 'none';
    if (reservation === 'none') return { is: 'found', lobby: planned };
    if (reservation === 'reassigned') has_reassigned = true;
  }
  return has_reassigned ? PERHAPS_LATER : NONE;
}

/** Returns whether a planned lobby suits another request and has room for it. */
function hasRoomFor(planned: PlannedLobby, request: FindRequest): boolean {
  const { namespace_id, version_id, search } = request;
  const { lobby, first_requests } = planned;
  const player_count = first_requests.reduce((count, first_request) => count + countSeats(first_request), 0);
  const seats = countSeats(request);
  return (
    planned.namespace_id === namespace_id &&
    planned.version_id === version_id &&
    search.game_modes.includes(lobby.game_mode) &&
    search.regions.includes(lobby.region) &&
    hasTags(lobby, search.tags) &&
    player_count + seats <= (seats > 1 ? lobby.max_players_party : lobby.max_players_normal)
  );
}
