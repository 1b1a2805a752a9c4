import type { Assignment, PlannedLobby } from '../../../src/features/lobbies/matchmaking/rounds/planner.ts';
import {
  countSeats,
  type FirstRequest,
  playerIdsOf,
  type SeatRequest,
} from '../../../src/features/lobbies/matchmaking/rounds/seat-requests.ts';
import { surplusLobbies } from '../../../src/features/lobbies/rules.ts';
import { type Arrival, haveRoom, isOverLimit, isReserved, mayCreateLobby } from './matchmaking-rules.ts';
import { type LobbyState, MatchmakingState } from './matchmaking-state.ts';
import { SimulatedQueue } from './simulated-queue.ts';

/** Requests whose client would have too many players, by their first player: whether by this request alone. */
export type OverLimit = Map<string, boolean>;

export const TIMES = { seat_timeout_ms: 60_000, ready_timeout_ms: 180_000, player_timeout_ms: 900_000 };
/** Empty lobbies that a game mode keeps in a region. */
export const IDLE_MAX = 2;

/** The database as the matchmaker sees it: commits are conditional, and each change has a number. */
export class SimulatedNamespace extends MatchmakingState {
  readonly faults: string[] = [];
  readonly queue = new SimulatedQueue();
  override version = 'one';
  /** The number of changes of all lobbies, and that of the last change of each. */
  changes = 0;
  readonly changed = new Map<LobbyState, number>();

  constructor(lobby_count_max: number, players_max: number) {
    super({ lobby_count_max, players_max, times: TIMES }, 0);
  }

  protected override idleMaxOf(): number {
    return IDLE_MAX;
  }

  protected override onChange(lobby: LobbyState): void {
    this.changes += 1;
    this.changed.set(lobby, this.changes);
    const { normal, direct, party } = lobby.maxima;
    const most = Math.max(normal, direct, party);
    if (lobby.taken > most) this.addFault(`${lobby.lobby_id} has ${lobby.taken} of ${most}`);
  }

  addFault(text: string): void {
    this.faults.push(`at ${this.now_ms} ms: ${text}`);
  }

  advance(milliseconds: number): void {
    this.now_ms += milliseconds;
  }

  /**
   * Takes seats as the statement does: a lobby takes all players proposed for it that are within their client's limit, or
   * none.
   */
  takeSeats(seats: Assignment[]): { accepting: Set<string>; over_limit: OverLimit } {
    const requests = seats.map(({ request }) => request);
    const admitted = new Set(this.#admit(requests));
    const leaving = new Set<SeatRequest>([...admitted, ...this.#overInAnyCase(requests, [...admitted])]);
    const accepted: [lobby: LobbyState, seated: SeatRequest[]][] = [];
    for (const [lobby_id, its] of Map.groupBy(seats, (seat) => seat.lobby_id)) {
      const lobby = this.lobby(lobby_id);
      const requests = its.map(({ request }) => request);
      const proposed = requests.filter((request) => admitted.has(request));
      if (!lobby || !this.#mayTake(lobby, proposed)) continue;
      const finds = proposed.filter(({ kind }) => kind === 'find');
      const last_place = Math.max(0, ...finds.map((request) => this.queue.placeOf(request)));
      const here = requests.filter((request) => leaving.has(request));
      if (!isReserved(lobby, this.queue.before(last_place, here))) accepted.push([lobby, proposed]);
    }
    // One statement: the finds that it seats count as waiting until its end.
    for (const [lobby, seated] of accepted) {
      for (const request of seated) {
        this.#seat(lobby, request);
        if (request.kind === 'find') this.queue.leave(request.ticket);
      }
    }
    const accepting = new Set(accepted.map(([{ lobby_id }]) => lobby_id));
    return { accepting, over_limit: this.#overLimit(requests.filter((request) => !admitted.has(request))) };
  }

  #mayTake(lobby: LobbyState, proposed: SeatRequest[]): boolean {
    if (lobby.stop_reason !== undefined || lobby.is_ending || proposed.length === 0) return false;
    if (lobby.is_closed && proposed.some(({ kind }) => kind === 'find')) return false;
    return haveRoom(lobby, proposed.map(arrivalOf));
  }

  /**
   * Creates a planned lobby, unless there are as many as there may be, earlier finds wait for it, or the client of the
   * first request has too many players.
   */
  createPlanned({ version_id, lobby, first_requests: all }: PlannedLobby): {
    created?: LobbyState;
    over_limit: OverLimit;
  } {
    const admitted = this.#admit(all);
    const refused = all.filter((request) => !admitted.includes(request));
    const [creator] = all;
    const is_refused = creator !== undefined && !admitted.includes(creator);
    const here = [...admitted, ...this.#overInAnyCase(all, admitted)];
    const waiting_before = this.queue.before(creator ? this.queue.placeOf(creator) : Number.POSITIVE_INFINITY, here);
    const last_place = Math.max(...admitted.map((request) => this.queue.placeOf(request)));
    const traits = traitsOf(lobby, version_id);
    const { lobby_count_max } = this.limits;
    const now = { running: this.running_count, lobby_count_max, waiting_before: waiting_before.length };
    const may = mayCreateLobby(now) && !isReserved(traits, this.queue.before(last_place, here));
    if (is_refused || !may) return { over_limit: this.#overLimit(refused) };
    const created = this.createLobby(`lobby ${this.lobbies.length}`, traits);
    const arrivals = admitted.map((request) => ({ kind: 'find', players: countSeats(request) }) as const);
    if (!haveRoom(created, arrivals)) this.addFault(`${created.lobby_id} is created too full`);
    for (const request of admitted) {
      this.#seat(created, request);
      this.queue.leave(request.ticket);
    }
    return { created, over_limit: this.#overLimit(refused) };
  }

  #seat(lobby: LobbyState, request: FirstRequest): void {
    const player_ids = playerIdsOf(request);
    for (const player_id of player_ids) {
      if (this.players.some((player) => player.player_id === player_id))
        this.addFault(`${player_id} has a second seat`);
    }
    this.seat(lobby, player_ids, request.client.name);
  }

  /** Returns the requests within the limits of their clients, counted in order. */
  #admit<Request extends FirstRequest>(requests: Request[]): Request[] {
    const counts = new Map<string, number>();
    return requests.filter((request) => {
      const { name, players_max } = request.client;
      const seated = counts.get(name) ?? this.countOf(name);
      counts.set(name, seated + countSeats(request));
      return !isOverLimit({ seated, players_max }, countSeats(request));
    });
  }

  /** Returns the requests over the limit of their client even if all other requests of the round fail. */
  #overInAnyCase<Request extends FirstRequest>(requests: Request[], admitted: FirstRequest[]): Request[] {
    return requests.filter((request) => {
      const { name, players_max } = request.client;
      const admitted_of_client = admitted.filter(({ client }) => client.name === name);
      const seated = this.countOf(name) + admitted_of_client.reduce((sum, one) => sum + countSeats(one), 0);
      return !admitted.includes(request) && isOverLimit({ seated, players_max }, countSeats(request));
    });
  }

  #overLimit(requests: FirstRequest[]): OverLimit {
    const isOver = (request: FirstRequest) => {
      const { name, players_max } = request.client;
      return isOverLimit({ seated: this.countOf(name), players_max }, countSeats(request));
    };
    return new Map(requests.map((request) => [request.player_id, isOver(request)]));
  }

  /** One step of the background work. The surplus lobbies that the service chooses must be those of the rules. */
  endDue(): void {
    this.endOverdue();
    const idle = this.idleLobbies();
    const timeOf = (ms: number | undefined) => (ms === undefined ? null : new Date(ms));
    const known = idle.map(({ lobby_id, game_mode, region, is_closed, is_ready, ...times }) => {
      const [idle_ts, closed_ts] = [timeOf(times.idle_since_ms), timeOf(times.closed_ms)];
      const create_ts = new Date(times.create_ms);
      const ready_ts = is_ready ? create_ts : null;
      return { lobby_id, game_mode, region, is_closed, create_ts, ready_ts, idle_ts, closed_ts };
    });
    const has_room = this.running_count < this.limits.lobby_count_max;
    const surplus = surplusLobbies(known, { now: new Date(this.now_ms), has_room }, () => IDLE_MAX);
    const chosen = new Set(surplus.map(({ lobby_id }) => lobby_id));
    this.endSurplus((lobby_id) => chosen.has(lobby_id));
    for (const lobby of idle) {
      const has_ended = lobby.stop_reason !== undefined;
      if (has_ended !== chosen.has(lobby.lobby_id))
        this.addFault(`${lobby.lobby_id} is ${has_ended ? '' : 'not '}surplus`);
    }
  }

  /** Checks that seats and players agree, and that no limit is exceeded. */
  check(): void {
    let seats = 0;
    for (const { lobby_id, seated, stop_reason, idle_since_ms } of this.lobbies) {
      seats += seated.size;
      if (stop_reason !== undefined && seated.size > 0) this.addFault(`${lobby_id} has stopped with players`);
      if (stop_reason === undefined && (idle_since_ms === undefined) !== seated.size > 0)
        this.addFault(`${lobby_id} is idle since ${idle_since_ms} with ${seated.size} players`);
    }
    const players = this.seatedPlayers();
    if (seats !== players.length) this.addFault(`${players.length} players on ${seats} seats`);
    for (const player of players) {
      const { player_id, lobby, state } = player;
      const is_seated = lobby.seated.has(player) && lobby.stop_reason === undefined && state !== 'gone';
      if (!is_seated) this.addFault(`${player_id} has no seat in ${lobby.lobby_id}`);
    }
    for (const client of ['near', 'far']) {
      if (this.countOf(client) > this.limits.players_max) this.addFault(`${this.countOf(client)} players of ${client}`);
    }
    if (this.running_count > this.limits.lobby_count_max) this.addFault(`${this.running_count} lobbies run`);
  }
}

export const arrivalOf = (request: SeatRequest): Arrival => ({ kind: request.kind, players: countSeats(request) });

function traitsOf(lobby: PlannedLobby['lobby'], version: string) {
  const { game_mode, region, tags, publicity, max_players_normal, max_players_direct, max_players_party } = lobby;
  const maxima = { normal: max_players_normal, direct: max_players_direct, party: max_players_party };
  return { version, game_mode, region, tags, publicity, maxima };
}
