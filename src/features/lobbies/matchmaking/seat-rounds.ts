import { after, type Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { ServiceError } from '../../../platform/errors.ts';
import { RoundQueue } from '../../../platform/rounds.ts';
import { overLimit, toRefusal } from '../refusals.ts';
import type { CreatePlanned, LobbyOutcome } from './create-lobbies.ts';
import type { LobbyCache } from './lobby-cache.ts';
import { LobbyIndex } from './lobby-index.ts';
import { type Plan, type PlannedLobby, planSeats } from './planner.ts';
import type { ReceiptDraft } from './receipt-draft.ts';
import { type NotPlaced, retryableAfter } from './retryable-refusals.ts';
import { type Seat, toSeat } from './seat.ts';
import { playerIdsOf, type SeatRequest } from './seat-requests.ts';
import * as store from './seats-store.ts';

/** Maximum number of requests in a round, and of requests that wait for one, or for their namespace to be loaded. */
const ROUND_MAX = 512;
const WAITING_MAX = 10_000;
/** Maximum number of rounds that decide a request, if it loses a race in each. */
const ATTEMPTS_MAX = 16;

/** A request that waits for its seat, or for an error. */
class PendingRequest {
  readonly request: SeatRequest;
  readonly draft: ReceiptDraft | undefined;
  readonly #seat = Promise.withResolvers<Seat>();
  /** The rounds that left it without an answer: it lost a race, was postponed, or its refusal may have been wrong. */
  attempts = 0;
  /** Whether an earlier round found its client over its limit, perhaps only because of other requests of that round. */
  was_over_limit = false;
  /** Whether an earlier round could not create its lobby, because the namespace had its maximum of lobbies. */
  had_too_many_lobbies = false;
  is_answered = false;

  constructor(request: SeatRequest, draft: ReceiptDraft | undefined) {
    this.request = request;
    this.draft = draft;
  }

  get seat(): Promise<Seat> {
    return this.#seat.promise;
  }

  resolve(seat: Seat): void {
    this.is_answered = true;
    this.#seat.resolve(seat);
  }

  reject(error: unknown): void {
    this.is_answered = true;
    this.#seat.reject(error);
  }
}

type PendingByPlayer = Map<string, PendingRequest>;

interface PlanOptions {
  /** Whether the lobbies are read from the database first. */
  is_fresh: boolean;
  /** The seats that the round's first plan has given. */
  seated?: Plan['seats'];
}

interface RoundPlan {
  plan: Plan;
  /** Requests that got seats from the cache: planned before all others, even before earlier ones. */
  planned_first: ReadonlySet<SeatRequest>;
}

interface RoundsDependencies {
  database: Database;
  clock: Clock;
  cache: LobbyCache;
  createPlanned: CreatePlanned;
  seat_timeout_ms: number;
}

export type Rounds = ReturnType<typeof createSeatRounds>;

/**
 * Gives seats in rounds. Requests that arrive while a round is committed are decided and committed together in the next one,
 * or the one after: one statement for all seats in running lobbies, one transaction for all new lobbies of a namespace.
 * There is no timer: a request that comes alone is decided at once.
 */
export function createSeatRounds({ database, clock, cache, createPlanned, seat_timeout_ms }: RoundsDependencies) {
  const connection = database.openDedicatedConnection();
  let loading_count = 0;

  const rounds = new RoundQueue<PendingRequest>({
    round_max: ROUND_MAX,
    waiting_max: WAITING_MAX,
    async work(round) {
      const loaded = setAsideUnloaded(round);
      if (loaded.length === 0) return;
      await decide(loaded).catch((error: unknown) => rejectRound(loaded, error));
      decideAgain(loaded.filter(({ is_answered }) => !is_answered));
    },
  });

  /**
   * Returns the requests whose namespace is in memory. The others come back once theirs is loaded: that takes a while if it
   * has many lobbies, and no other namespace waits for it.
   */
  function setAsideUnloaded(round: PendingRequest[]): PendingRequest[] {
    const isLoaded = ({ request }: PendingRequest) => cache.isLoaded(request.namespace_id);
    if (round.every(isLoaded)) return round;
    const unloaded = Map.groupBy(
      round.filter((one) => !isLoaded(one)),
      ({ request }) => request.namespace_id,
    );
    // Never rejects: a failure rejects the requests.
    for (const [namespace_id, pending] of unloaded) void waitUntilLoaded(namespace_id, pending);
    return round.filter(isLoaded);
  }

  async function waitUntilLoaded(namespace_id: string, pending: PendingRequest[]): Promise<void> {
    loading_count += pending.length;
    try {
      if (loading_count > WAITING_MAX) throw new ServiceError('DATABASE_BUSY', {});
      await cache.load(namespace_id);
      rounds.addFirst(pending);
    } catch (error) {
      for (const one of pending) one.reject(error);
    } finally {
      loading_count -= pending.length;
    }
  }

  /** Answers requests with seats and errors. The others are decided again in the next round. */
  async function decide(round: PendingRequest[]): Promise<void> {
    for (const { draft } of round) draft?.recordRound();
    const by_player: PendingByPlayer = new Map(round.map((one) => [one.request.player_id, one]));
    const { plan, planned_first } = await planRound(round);
    for (const { request, draft } of round) draft?.recordCandidates(plan.candidates.get(request) ?? []);
    const not_placed = [
      ...(await commitSeats(plan.seats, by_player)),
      ...(await commitLobbies(plan.new_lobbies, by_player)),
    ];
    const requests = round.map(({ request }) => request);
    const isRetryable = retryableAfter({ requests, planned_first, not_placed });
    for (const { request, code } of plan.refusals) {
      if (!isRetryable(request)) by_player.get(request.player_id)?.reject(toRefusal(code));
    }
  }

  /**
   * Plans seats with the cached lobbies. Requests without a seat are planned again with the lobbies read from the
   * database (I-M7).
   */
  async function planRound(round: PendingRequest[]): Promise<RoundPlan> {
    const requests = round.map(({ request }) => request);
    const is_repeated = round.some(({ attempts }) => attempts > 0);
    const first_plan = await plan(requests, { is_fresh: is_repeated });
    const seated = new Set(first_plan.seats.map(({ request }) => request));
    // A fresh first plan decided all requests in their order, so none took a seat from an earlier one that it refused.
    const planned_first = is_repeated ? new Set<SeatRequest>() : seated;
    const others = requests.filter((request) => !seated.has(request));
    if (others.length === 0) return { plan: first_plan, planned_first };
    const fresh = await plan(others, { is_fresh: true, seated: first_plan.seats });
    const candidates = new Map([...first_plan.candidates, ...fresh.candidates]);
    return { plan: { ...fresh, seats: [...first_plan.seats, ...fresh.seats], candidates }, planned_first };
  }

  /** Plans requests with the lobbies of their namespaces. Postpones those whose namespace must be loaded first. */
  async function plan(requests: SeatRequest[], { is_fresh, seated = [] }: PlanOptions): Promise<Plan> {
    const namespace_ids = [...new Set(requests.map(({ namespace_id }) => namespace_id))];
    const read = await Promise.all(namespace_ids.map((namespace_id) => cache.read(namespace_id, { is_fresh })));
    const indexes = new Map(namespace_ids.flatMap((namespace_id, at) => (read[at] ? [[namespace_id, read[at]]] : [])));
    const isRead = ({ namespace_id }: SeatRequest) => indexes.has(namespace_id);
    const indexOf = (namespace_id: string) => indexes.get(namespace_id) ?? new LobbyIndex();
    const planned = planSeats(requests.filter(isRead), indexOf, seated);
    const unread = requests.filter((request) => !isRead(request));
    return { ...planned, postponed: [...planned.postponed, ...unread] };
  }

  /** Takes the planned seats in running lobbies. Returns the requests that did not get theirs. */
  async function commitSeats(seats: Plan['seats'], by_player: PendingByPlayer): Promise<SeatRequest[]> {
    if (seats.length === 0) return [];
    const { accepting, over_limit } = await takeSeats(seats, by_player);
    const by_lobby = new Map(accepting.map((lobby) => [lobby.lobby_id, lobby]));
    for (const lobby of accepting) cache.applyCommit(lobby.namespace_id, lobby.changed, lobby);
    const limits = new Map(over_limit.map((one) => [one.request_number, one]));
    const not_placed: SeatRequest[] = [];
    for (const [request_number, { request, lobby_id }] of seats.entries()) {
      const pending = by_player.get(request.player_id);
      const lobby = by_lobby.get(lobby_id);
      const limit = limits.get(request_number);
      if (limit || !lobby) not_placed.push(request);
      if (!pending) continue;
      if (limit) pending.was_over_limit = true;
      if (limit?.is_over_alone) pending.reject(overLimit(request));
      else if (!limit && lobby) pending.resolve(toSeat(lobby, false));
    }
    // The cache counts planned seats in lobbies that took no players.
    const not_taken = Map.groupBy(
      seats.filter(({ lobby_id }) => !by_lobby.has(lobby_id)),
      ({ request }) => request.namespace_id,
    );
    for (const [namespace_id, seats_there] of not_taken) {
      await cache.reload(namespace_id, [...new Set(seats_there.map(({ lobby_id }) => lobby_id))]);
    }
    return not_placed;
  }

  /**
   * Takes seats. Counts the players of clients exactly, which is slower, if one of the clients was over its limit before, or
   * if another transaction has seated players of one of them meanwhile.
   */
  async function takeSeats(seats: Plan['seats'], by_player: PendingByPlayer): Promise<store.TakenSeats> {
    const now = clock.now();
    const moments = { now, deadline: after(now, seat_timeout_ms) };
    const proposed = seats.flatMap(toProposedSeats);
    if (!seats.some(({ request }) => by_player.get(request.player_id)?.was_over_limit)) {
      try {
        return await store.takeSeats(connection, proposed, moments, { has_queue: hasQueue(seats, by_player) });
      } catch (error) {
        if (!store.isConflict(error)) throw error;
      }
    }
    return await database.transact((tx) => store.takeSeatsUnderLock(tx, proposed, moments));
  }

  /**
   * Returns whether finds may wait in the namespaces of seats. It assumes so for a request that is decided again: a find may
   * have entered the queue on another process.
   */
  function hasQueue(seats: Plan['seats'], by_player: PendingByPlayer): boolean {
    return seats.some(({ request }) => {
      const is_repeated = (by_player.get(request.player_id)?.attempts ?? 0) > 0;
      return is_repeated || cache.mayHaveQueue(request.namespace_id);
    });
  }

  /**
   * Creates the planned lobbies. Returns the requests of lobbies that were not created, or in which a client was over its
   * limit.
   */
  async function commitLobbies(planned: PlannedLobby[], by_player: PendingByPlayer): Promise<NotPlaced[]> {
    if (planned.length === 0) return [];
    return (await createPlanned(planned)).flatMap((outcome) => applyLobbyOutcome(outcome, by_player));
  }

  function applyLobbyOutcome(outcome: LobbyOutcome, by_player: PendingByPlayer): NotPlaced[] {
    const { planned, over_limit } = outcome;
    const { namespace_id, first_players } = planned;
    const limits = new Map(over_limit.map((one) => [one.request_number, one]));
    const within_limit: PendingRequest[] = [];
    for (const [request_number, { player_id }] of first_players.entries()) {
      const pending = by_player.get(player_id);
      const limit = limits.get(request_number);
      if (!pending) continue;
      if (limit?.is_over_alone) pending.reject(overLimit(pending.request));
      else if (!limit) within_limit.push(pending);
    }
    if ('lobby' in outcome) {
      cache.applyCommit(namespace_id, outcome.lobby.changed, outcome.lobby);
      for (const pending of within_limit) pending.resolve(toSeat(outcome.lobby, true));
    } else if ('error' in outcome && !limits.get(CREATOR)?.is_over_alone) {
      // If only the creator is over its limit, the others are decided again, and one of them creates the lobby.
      for (const pending of within_limit) refuseLobby(pending, outcome.error);
    }
    const is_complete = 'lobby' in outcome && over_limit.length === 0;
    return is_complete ? [] : first_players.map(({ player_id }) => ({ player_id, namespace_id }));
  }

  /**
   * Rejects a request whose lobby could not be created. The first time that there are too many lobbies, it gets no answer:
   * another process may have created a lobby with free seats.
   */
  function refuseLobby(pending: PendingRequest, error: unknown): void {
    const is_too_many = error instanceof ServiceError && error.code === 'MATCHMAKER_TOO_MANY_LOBBIES';
    if (!is_too_many || pending.had_too_many_lobbies) pending.reject(toCreateRefusal(pending.request, error));
    pending.had_too_many_lobbies = true;
  }

  /** Puts requests without an answer in front of all later ones, in their order. */
  function decideAgain(unanswered: PendingRequest[]): void {
    for (const one of unanswered) {
      one.attempts += 1;
      if (one.attempts < ATTEMPTS_MAX) continue;
      // The entry may be wrong, because few requests lose as many races as this.
      cache.forget(one.request.namespace_id);
      one.reject(new ServiceError('DATABASE_BUSY', {}));
    }
    rounds.addFirst(unanswered.filter(({ is_answered }) => !is_answered));
  }

  /** Rejects a round whose commit failed, and forgets the cache's entries, in which the planned seats are counted. */
  function rejectRound(round: PendingRequest[], error: unknown): void {
    for (const one of round) {
      cache.forget(one.request.namespace_id);
      one.reject(error);
    }
  }

  return {
    /** Returns a seat for the request. Throws the error of a refused request. */
    takeSeat(request: SeatRequest, draft?: ReceiptDraft): Promise<Seat> {
      const pending = new PendingRequest(request, draft);
      rounds.add(pending);
      return pending.seat;
    },
  };
}

/** The request number of a new lobby's creator. */
const CREATOR = 0;

function toProposedSeats({ request, lobby_id }: Plan['seats'][number], request_number: number): store.ProposedSeat[] {
  const { namespace_id, address, client } = request;
  const player_ids = playerIdsOf(request);
  const kind = request.kind === 'find' && player_ids.length > 1 ? 'party' : request.kind;
  const ticket = request.kind === 'find' ? (request.ticket ?? null) : null;
  const { name, players_max } = client;
  const shared = { lobby_id, namespace_id, address, kind, request_number, ticket, client: name, players_max } as const;
  return player_ids.map((player_id) => ({ ...shared, player_id }));
}

/**
 * Returns the error for a request whose lobby could not be created. That lobby may have been another request's, in which the
 * plan gave a seat to a find that must not create lobbies: such a find gets MATCHMAKER_NO_AVAILABLE_LOBBIES.
 */
function toCreateRefusal(request: SeatRequest, error: unknown): unknown {
  const creates_none = request.kind === 'find' && !request.search.new_lobby;
  return creates_none && error instanceof ServiceError
    ? new ServiceError('MATCHMAKER_NO_AVAILABLE_LOBBIES', {})
    : error;
}
