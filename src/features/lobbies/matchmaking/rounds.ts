import { after, type Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { isRefusedBy } from '../../../platform/database/failures.ts';
import { ServiceError } from '../../../platform/errors.ts';
import { sizeOfRound } from '../../../platform/rounds.ts';
import { type Crowded, selectOver } from '../admission-store.ts';
import { refusalOf } from '../refusals.ts';
import * as store from '../seats-store.ts';
import type { LobbyRow } from '../tables.ts';
import type { Founding } from './create-lobbies.ts';
import type { Atlas } from './lobby-cache.ts';
import { Places } from './lobby-index.ts';
import { membersOf, type Plan, type PlannedLobby, planSeats, type SeatRequest } from './planner.ts';
import type { Draft } from './receipts.ts';

/** How many requests are decided together at the most, and how many may wait for that. */
const ROUND_MAX = 512;
const WAITING_MAX = 10_000;
/** For how many rounds, after somebody had too many players, it is looked at first who has. */
const CAREFUL_ROUNDS = 64;
/** How often a request is decided anew after somebody else was faster. */
const ATTEMPTS_MAX = 16;

/** The seat somebody got. */
export interface Seat {
  lobby_id: string;
  code: string | null;
  /** Slug of the datacenter. */
  region: string;
  /** How to reach the lobby; null when it is not ready yet. */
  ports: LobbyRow['ports'];
  /** Whether the lobby was made for him. */
  is_new: boolean;
}

interface Waiting {
  request: SeatRequest;
  draft: Draft | undefined;
  attempts: number;
  /** Whether a lobby was to be made for it when the namespace had as many as it may. */
  was_too_many: boolean;
  resolve(seat: Seat): void;
  reject(error: unknown): void;
}

interface RoundsDependencies {
  database: Database;
  clock: Clock;
  atlas: Atlas;
  seat_timeout_ms: number;
  founding: Founding;
}

export type Rounds = ReturnType<typeof createRounds>;

/**
 * Gives seats. Requests that arrive while a round is being committed wait for the next one, or the one after where they are
 * many, and are decided and committed together: one statement for all who go to lobbies there are, one transaction for all
 * lobbies that are made. There is no timer: a request that comes alone is decided at once.
 */
export function createRounds({ database, clock, atlas, seat_timeout_ms, founding }: RoundsDependencies) {
  const connection = database.openDedicatedConnection();
  let waiting: Waiting[] = [];
  let is_running = false;
  let careful_rounds = 0;

  async function run(): Promise<void> {
    if (is_running) return;
    is_running = true;
    let last = 0;
    while (waiting.length > 0) {
      const round = waiting.slice(0, sizeOfRound(waiting.length, last, ROUND_MAX));
      waiting = waiting.slice(round.length);
      last = round.length;
      await decide(round).catch((error: unknown) => giveUp(round, error));
    }
    is_running = false;
  }

  async function decide(round: Waiting[]): Promise<void> {
    for (const { draft } of round) draft?.reach('decided');
    const was_unlucky = round.some(({ attempts }) => attempts > 0);
    const requests = round.map(({ request }) => request);
    const first = planSeats(requests, await openPlaces(requests, was_unlucky));
    // A no is said, and a lobby made, by what the database holds now, not by what we happen to remember.
    const seated = new Set(first.seats.map(({ request }) => request));
    const others = requests.filter((request) => !seated.has(request));
    const second = others.length > 0 ? planSeats(others, await openPlaces(others, true)) : undefined;
    for (const { request, draft } of round) {
      draft?.consider(second?.considered.get(request) ?? first.considered.get(request) ?? []);
    }
    const by_player = new Map(round.map((one) => [one.request.player_id, one]));
    const unseated = [
      ...(await takeSeats([...first.seats, ...(second?.seats ?? [])], by_player)),
      ...(await foundLobbies(second?.new_lobbies ?? [], by_player)),
    ];
    retry((second?.postponed ?? []).flatMap(({ player_id }) => by_player.get(player_id) ?? []));
    const isUnsure = unsureAfter(requests, unseated);
    const unsure: Waiting[] = [];
    for (const { request, code } of second?.refusals ?? []) {
      const one = by_player.get(request.player_id);
      if (one && isUnsure(request)) unsure.push(one);
      else one?.reject(refusalOf(code));
    }
    retry(unsure);
  }

  /** Gives those who have too many players to sit where they were to. */
  async function takeSeats(seats: Plan['seats'], by_player: Map<string, Waiting>): Promise<Unseated[]> {
    if (seats.length === 0) return [];
    const { accepting, crowded } = await propose(seats);
    const by_lobby = new Map(accepting.map((lobby) => [lobby.lobby_id, lobby]));
    for (const lobby of accepting) atlas.settle(lobby.namespace_id, lobby.changed, lobby);
    const requests = seats.map(({ request }) => request);
    const too_many = crowdedAmong(requests, crowded);
    const unlucky = seats.filter(({ request: { player_id }, lobby_id }) =>
      too_many.has(player_id) ? !too_many.get(player_id) : !by_lobby.has(lobby_id),
    );
    for (const { request, lobby_id } of seats) {
      const lobby = by_lobby.get(lobby_id);
      const is_crowded = too_many.has(request.player_id);
      if (lobby && !is_crowded) by_player.get(request.player_id)?.resolve(toSeat(lobby, false));
      if (too_many.get(request.player_id)) by_player.get(request.player_id)?.reject(tooManyOf(request));
    }
    // A lobby that took fewer than was noted has places again, as one that took nobody.
    const by_namespace = Map.groupBy(
      seats.filter(({ lobby_id }) => !by_lobby.has(lobby_id)),
      ({ request }) => request.namespace_id,
    );
    for (const [namespace_id, its] of by_namespace) {
      await atlas.lookAgain(namespace_id, [...new Set(its.map(({ lobby_id }) => lobby_id))]);
    }
    retry(unlucky.flatMap(({ request }) => by_player.get(request.player_id) ?? []));
    return requests.filter(({ player_id }) => too_many.has(player_id));
  }

  async function propose(seats: Plan['seats']) {
    const now = clock.now();
    const proposed = seats.flatMap(({ request, lobby_id }, party): store.ProposedSeat[] => {
      const { namespace_id, address, client } = request;
      const members = membersOf(request);
      const kind = request.kind === 'find' && members.length > 1 ? 'party' : request.kind;
      const ticket = request.kind === 'find' ? (request.ticket ?? null) : null;
      const shared = { lobby_id, namespace_id, address, kind, party, ticket } as const;
      return members.map((player_id) => ({
        ...shared,
        player_id,
        client: client.name,
        players_max: client.players_max,
      }));
    });
    const moments = { now, deadline: after(now, seat_timeout_ms) };
    try {
      if (careful_rounds === 0 && proposed.every(({ ticket }) => ticket === null)) {
        const taken = await store.takeSeatsOfFew(connection, proposed, moments);
        if (taken) return taken;
      }
      const over = await selectOver(
        connection,
        proposed.filter(({ ticket }) => ticket === null),
      );
      const others = proposed.filter(({ party }) => !over.some((one) => one.party === party));
      const { accepting, crowded } = await store.takeSeats(connection, others, moments);
      careful_rounds = over.length + crowded.length > 0 ? CAREFUL_ROUNDS : Math.max(0, careful_rounds - 1);
      return { accepting, crowded: [...over, ...crowded] };
    } catch (error) {
      // Two processes counted the first players of one client at the same moment: nobody sits, all are decided anew.
      if (isRefusedBy(error, 'client_counts_max')) return { accepting: [], crowded: [] };
      throw error;
    }
  }

  /** Gives those who were to make a lobby that was not made, or without somebody who was to sit there. */
  async function foundLobbies(planned: PlannedLobby[], by_player: Map<string, Waiting>): Promise<Unseated[]> {
    if (planned.length === 0) return [];
    const unseated: Unseated[] = [];
    for (const founded of await founding.foundLobbies(planned)) {
      const { planned: its, crowded } = founded;
      const { namespace_id } = its;
      if (crowded.length > 0 || 'error' in founded) {
        unseated.push(...its.founders.map(({ player_id }) => ({ player_id, namespace_id })));
      }
      const too_many = crowdedAmong(its.founders, crowded);
      const waiters = its.founders.flatMap(({ player_id }) => by_player.get(player_id) ?? []);
      for (const one of waiters) if (too_many.get(one.request.player_id)) one.reject(tooManyOf(one.request));
      const others = waiters.filter(({ request }) => !too_many.has(request.player_id));
      if ('lobby' in founded) {
        atlas.settle(its.namespace_id, founded.lobby.changed, founded.lobby);
        for (const one of others) one.resolve(toSeat(founded.lobby, true));
      } else if (isOfFounder(founded)) {
        // Whoever was to make it may not come: the others have not been decided yet.
        retry(others);
      } else {
        refuse(others, founded.error);
      }
      retry(waiters.filter(({ request }) => too_many.get(request.player_id) === false));
    }
    return unseated;
  }

  /** Where there were too many lobbies, another machine may just have made one with a place. */
  function refuse(waiters: Waiting[], error: unknown): void {
    const is_too_many = error instanceof ServiceError && error.code === 'MATCHMAKER_TOO_MANY_LOBBIES';
    const again = is_too_many ? waiters.filter(({ was_too_many }) => !was_too_many) : [];
    for (const one of again) one.was_too_many = true;
    retry(again);
    for (const one of waiters) if (!again.includes(one)) one.reject(reasonFor(one.request, error));
  }

  /** Somebody else was faster: these are decided anew, before those who came later. */
  function retry(unlucky: Waiting[]): void {
    for (const one of unlucky) one.attempts += 1;
    for (const { reject } of unlucky.filter(({ attempts }) => attempts >= ATTEMPTS_MAX)) {
      reject(new ServiceError('DATABASE_BUSY', {}));
    }
    waiting = [...unlucky.filter(({ attempts }) => attempts < ATTEMPTS_MAX), ...waiting];
  }

  /** The database did not do what was planned; what the plan changed in our memory is forgotten with it. */
  function giveUp(round: Waiting[], error: unknown): void {
    waiting = waiting.filter((one) => !round.includes(one));
    for (const { request, reject } of round) {
      atlas.forget(request.namespace_id);
      reject(error);
    }
  }

  async function openPlaces(requests: SeatRequest[], is_fresh: boolean): Promise<(namespace_id: string) => Places> {
    const namespace_ids = [...new Set(requests.map(({ namespace_id }) => namespace_id))];
    const opened = await Promise.all(namespace_ids.map((namespace_id) => atlas.open(namespace_id, { is_fresh })));
    const by_namespace = new Map(namespace_ids.map((namespace_id, index) => [namespace_id, opened[index]]));
    return (namespace_id) => by_namespace.get(namespace_id) ?? new Places();
  }

  return {
    /** A seat for the request. Throws what the matchmaker refuses it with. */
    seat(request: SeatRequest, draft?: Draft): Promise<Seat> {
      if (waiting.length >= WAITING_MAX) throw new ServiceError('DATABASE_BUSY', {});
      const { promise, resolve, reject } = Promise.withResolvers<Seat>();
      waiting.push({ request, draft, attempts: 0, was_too_many: false, resolve, reject });
      // Never fails: each of its requests is answered by its own promise.
      void run();
      return promise;
    },
  };
}

/** Who has too many players, and whether by himself, by his id: a party is its place among those who were to sit. */
function crowdedAmong(people: { player_id: string }[], crowded: Crowded[]): Map<string, boolean> {
  return new Map(crowded.map(({ party, is_over }) => [people[party]?.player_id ?? '', is_over]));
}

/** Whether a lobby was not made because the one who was to make it has too many players. */
function isOfFounder({ crowded }: { crowded: Crowded[] }): boolean {
  return crowded.some(({ party, is_over }) => party === 0 && is_over);
}

export function tooManyOf({ client }: Pick<SeatRequest, 'client'>): ServiceError {
  return new ServiceError('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', { max: client.players_max });
}

/** Somebody who does not sit where it was planned that he would. */
type Unseated = Pick<SeatRequest, 'player_id' | 'namespace_id'>;

/**
 * Whether a no may be wrong: somebody did not sit whose turn in the round was before, so there may be room after all. Who
 * comes later took nothing away; else one who asks again and again, and may not, would keep all others waiting.
 */
export function unsureAfter(requests: SeatRequest[], unseated: Unseated[]): (request: SeatRequest) => boolean {
  // Those who wait for their turn are decided first.
  const placeOf = (request: SeatRequest, place: number) => ('ticket' in request && request.ticket ? -1 : place);
  const places = new Map(requests.map((request, place) => [request.player_id, placeOf(request, place)]));
  const first = new Map<string, number>();
  for (const { player_id, namespace_id } of unseated) {
    first.set(namespace_id, Math.min(first.get(namespace_id) ?? Number.POSITIVE_INFINITY, places.get(player_id) ?? -1));
  }
  return ({ player_id, namespace_id }) =>
    (first.get(namespace_id) ?? Number.POSITIVE_INFINITY) <= (places.get(player_id) ?? -1);
}

/** Whoever was to sit in a lobby that others wanted made, and wanted none made for himself, found none. */
function reasonFor(request: SeatRequest, error: unknown): unknown {
  const makes_none = request.kind === 'find' && !request.search.creates;
  return makes_none && error instanceof ServiceError ? new ServiceError('MATCHMAKER_NO_AVAILABLE_LOBBIES', {}) : error;
}

export function toSeat(
  { lobby_id, code, region, ports }: Pick<LobbyRow, 'lobby_id' | 'code' | 'region' | 'ports'>,
  is_new: boolean,
): Seat {
  return { lobby_id, code, region, ports, is_new };
}
