import { after, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Atlas } from './atlas.ts';
import type { Founding } from './founding.ts';
import { Places } from './places.ts';
import type { Draft } from './receipts.ts';
import { membersOf, type Plan, type PlannedLobby, planSeats, type SeatRequest } from './rules.ts';
import * as store from './store.ts';
import type { LobbyRow } from './tables.ts';

/** How many requests are decided together at the most, and how many may wait for that. */
const ROUND_MAX = 512;
const WAITING_MAX = 10_000;
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
 * Gives seats. Requests that arrive while a round is being committed wait for the next one, and are decided and committed
 * together: one statement for all who go to lobbies there are, one transaction for all lobbies that are made. There is no
 * timer: a request that comes alone is decided at once.
 */
export function createRounds({ database, clock, atlas, seat_timeout_ms, founding }: RoundsDependencies) {
  let waiting: Waiting[] = [];
  let is_running = false;

  async function run(): Promise<void> {
    if (is_running) return;
    is_running = true;
    while (waiting.length > 0) {
      const round = waiting.slice(0, ROUND_MAX);
      waiting = waiting.slice(ROUND_MAX);
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
    for (const { request, code } of second?.refusals ?? []) {
      by_player.get(request.player_id)?.reject(new ServiceError(code, {}));
    }
    await takeSeats([...first.seats, ...(second?.seats ?? [])], by_player);
    await foundLobbies(second?.new_lobbies ?? [], by_player);
  }

  async function takeSeats(seats: Plan['seats'], by_player: Map<string, Waiting>): Promise<void> {
    if (seats.length === 0) return;
    const now = clock.now();
    const proposed = seats.flatMap(({ request, lobby_id }): store.ProposedSeat[] => {
      const { namespace_id, address } = request;
      const members = membersOf(request);
      const kind = request.kind === 'find' && members.length > 1 ? 'party' : request.kind;
      return members.map((player_id) => ({ player_id, lobby_id, namespace_id, address, kind }));
    });
    const accepting = await store.takeSeats(database.queries, proposed, { now, deadline: after(now, seat_timeout_ms) });
    const by_lobby = new Map(accepting.map((lobby) => [lobby.lobby_id, lobby]));
    for (const lobby of accepting) atlas.settle(lobby.namespace_id, lobby.changed, lobby);
    const refusing = seats.filter(({ lobby_id }) => !by_lobby.has(lobby_id));
    for (const { request, lobby_id } of seats) {
      const lobby = by_lobby.get(lobby_id);
      if (lobby) by_player.get(request.player_id)?.resolve(toSeat(lobby, false));
    }
    const by_namespace = Map.groupBy(refusing, ({ request }) => request.namespace_id);
    for (const [namespace_id, its] of by_namespace) {
      await atlas.lookAgain(namespace_id, [...new Set(its.map(({ lobby_id }) => lobby_id))]);
    }
    retry(refusing.flatMap(({ request }) => by_player.get(request.player_id) ?? []));
  }

  async function foundLobbies(planned: PlannedLobby[], by_player: Map<string, Waiting>): Promise<void> {
    if (planned.length === 0) return;
    for (const founded of await founding.foundLobbies(planned)) {
      const { founders, namespace_id } = founded.planned;
      const waiters = founders.flatMap(({ player_id }) => by_player.get(player_id) ?? []);
      if ('lobby' in founded) {
        atlas.settle(namespace_id, founded.lobby.changed, founded.lobby);
        for (const one of waiters) one.resolve(toSeat(founded.lobby, true));
      } else {
        refuse(waiters, founded.error);
      }
    }
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
    async seat(request: SeatRequest, draft?: Draft): Promise<Seat> {
      if (waiting.length >= WAITING_MAX) throw new ServiceError('DATABASE_BUSY', {});
      const { promise, resolve, reject } = Promise.withResolvers<Seat>();
      waiting.push({ request, draft, attempts: 0, was_too_many: false, resolve, reject });
      // Never fails: each of its requests is answered by its own promise.
      void run();
      return await promise;
    },
  };
}

/** Whoever was to sit in a lobby that others wanted made, and wanted none made for himself, found none. */
function reasonFor(request: SeatRequest, error: unknown): unknown {
  const makes_none = request.kind === 'find' && !request.search.creates;
  return makes_none && error instanceof ServiceError ? new ServiceError('MATCHMAKER_NO_AVAILABLE_LOBBIES', {}) : error;
}

export function toSeat({ lobby_id, code, region, ports }: LobbyRow, is_new: boolean): Seat {
  return { lobby_id, code, region, ports, is_new };
}
