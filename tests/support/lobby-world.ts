import type { OpenLobby } from '../../src/features/lobbies/matchmaking/lobby-index.ts';
import type { Plan, PlannedLobby } from '../../src/features/lobbies/matchmaking/planner.ts';
import {
  type FirstPlayers,
  playerIdsOf,
  type SeatRequest,
} from '../../src/features/lobbies/matchmaking/seat-requests.ts';
import { surplusLobbies } from '../../src/features/lobbies/rules.ts';
import { isAwaited, WorldLine } from './lobby-line.ts';

/** A lobby as the one truth has it. */
export interface WorldLobby extends OpenLobby {
  /** The version of the world with which it last changed. */
  changed: number;
  seats: Set<string>;
  has_had_players: boolean;
  is_ready: boolean;
  is_ending: boolean;
  create_ms: number;
  idle_since_ms: number | undefined;
  stop_ms: number | undefined;
  stop_reason: string | undefined;
}

/** Requests whose client has too many players, by their first player: whether that is so of each by itself. */
export type Crowded = Map<string, boolean>;

export interface Visit {
  lobby_id: string;
  client: string;
  create_ms: number;
  deadline_ms: number | undefined;
  is_connected: boolean;
  remove_reason: string | undefined;
}

export const SEAT_TIMEOUT_MS = 60_000;
export const READY_TIMEOUT_MS = 180_000;
export const PLAYER_TIMEOUT_MS = 900_000;

/** What the database is to the matchmaker, in plain maps: claims are conditional, and each change has a number. */
export class LobbyWorld {
  readonly lobbies = new Map<string, WorldLobby>();
  readonly running = new Map<string, WorldLobby>();
  readonly visits = new Map<string, Visit>();
  /** Seats that have not ended. */
  readonly seated = new Map<string, Visit>();
  readonly faults: string[] = [];
  readonly line = new WorldLine();
  now_ms = 0;
  version = 0;

  constructor(
    readonly lobby_count_max: number,
    readonly players_max: number,
  ) {}

  fault(text: string): void {
    this.faults.push(`at ${this.now_ms} ms: ${text}`);
  }

  pass(milliseconds: number): void {
    this.now_ms += milliseconds;
  }

  #change(lobby: WorldLobby): void {
    this.version += 1;
    lobby.changed = this.version;
    lobby.player_count = lobby.seats.size;
    const most = Math.max(lobby.max_players_normal, lobby.max_players_direct, lobby.max_players_party);
    if (lobby.player_count > most) this.fault(`${lobby.lobby_id} has ${lobby.player_count} of ${most}`);
  }

  /** How many players of a client sit. */
  countOf(client: string): number {
    return [...this.seated.values()].filter((visit) => visit.client === client).length;
  }

  /** Those of the requests whose client may have them, counted in their order. */
  #admit<Request extends FirstPlayers>(requests: Request[]): Request[] {
    const counts = new Map<string, number>();
    return requests.filter((request) => {
      const { name, players_max } = request.client;
      const count = (counts.get(name) ?? this.countOf(name)) + playerIdsOf(request).length;
      counts.set(name, count);
      return count <= players_max;
    });
  }

  /** Those who have too many players whatever becomes of the others. */
  #passed<Request extends FirstPlayers>(requests: Request[], admitted: FirstPlayers[]): Request[] {
    return requests.filter((request) => {
      const { name, players_max } = request.client;
      const coming = admitted.filter(({ client }) => client.name === name).flatMap(playerIdsOf).length;
      const is_over_alone = this.countOf(name) + coming + playerIdsOf(request).length > players_max;
      return is_over_alone && !admitted.includes(request);
    });
  }

  #over_limit(requests: FirstPlayers[]): Crowded {
    const isOver = (one: FirstPlayers) =>
      this.countOf(one.client.name) + playerIdsOf(one).length > one.client.players_max;
    return new Map(requests.map((one) => [one.player_id, isOver(one)]));
  }

  /** For each lobby all who may and were proposed, or nobody, as `store.takeSeats` does. Gives the lobbies that took them. */
  takeSeats(seats: Plan['seats']): { accepting: Set<string>; over_limit: Crowded } {
    const accepting = new Set<string>();
    const admitted = new Set(this.#admit(seats.map(({ request }) => request)));
    const passed = new Set<SeatRequest>(
      this.#passed(
        seats.map(({ request }) => request),
        [...admitted],
      ),
    );
    const rows = this.line.rows;
    const left = new Set<SeatRequest>();
    for (const [lobby_id, its] of Map.groupBy(seats, (seat) => seat.lobby_id)) {
      const lobby = this.running.get(lobby_id);
      const proposed = its.filter(({ request }) => admitted.has(request));
      if (!lobby || lobby.is_ending || proposed.length === 0 || !hasRoom(lobby, proposed)) continue;
      const finds = proposed.flatMap(({ request }) => (request.kind === 'find' ? [request] : []));
      const last_place = Math.max(0, ...finds.map((request) => this.line.placeOf(request)));
      const here = its.map(({ request }) => request).filter((request) => admitted.has(request) || passed.has(request));
      if (isAwaited(lobby, this.line.before(last_place, here))) continue;
      accepting.add(lobby_id);
      for (const { request } of proposed) {
        left.add(request);
        this.#sit(lobby, playerIdsOf(request), request.client.name);
      }
      this.#change(lobby);
    }
    // All of it happens at one moment: whoever sits by it has waited until then.
    if (rows !== this.line.rows) this.fault('somebody left the queue meanwhile');
    for (const request of left) if (request.kind === 'find') this.line.leave(request.ticket);
    const others = seats.map(({ request }) => request).filter((request) => !admitted.has(request));
    return { accepting, over_limit: this.#over_limit(others) };
  }

  #sit(lobby: WorldLobby, player_ids: string[], client: string): void {
    lobby.idle_since_ms = undefined;
    lobby.has_had_players = true;
    for (const player_id of player_ids) {
      const deadline_ms = lobby.is_ready ? this.now_ms + SEAT_TIMEOUT_MS : undefined;
      const { lobby_id } = lobby;
      const visit = {
        lobby_id,
        client,
        create_ms: this.now_ms,
        deadline_ms,
        is_connected: false,
        remove_reason: undefined,
      };
      if (this.visits.has(player_id)) this.fault(`${player_id} has a second seat`);
      lobby.seats.add(player_id);
      this.visits.set(player_id, visit);
      this.seated.set(player_id, visit);
    }
  }

  /** None when there are as many as there may be, when others wait for it or when its maker has too many players. */
  found({ version_id, lobby, first_players: all }: PlannedLobby): { made?: WorldLobby; over_limit: Crowded } {
    const first_players = this.#admit(all);
    const others = all.filter((creator) => !first_players.includes(creator));
    const [maker] = all;
    const is_refused = maker !== undefined && !first_players.includes(maker);
    const last_place = Math.max(...first_players.map((creator) => this.line.placeOf(creator)));
    const first_place = maker ? this.line.placeOf(maker) : Infinity;
    const here = [...first_players, ...this.#passed(all, first_players)];
    const is_awaited =
      this.line.before(first_place, here).length > 0 ||
      isAwaited({ ...lobby, version_id }, this.line.before(last_place, here));
    if (is_refused || is_awaited || this.running.size >= this.lobby_count_max)
      return { over_limit: this.#over_limit(others) };
    const { lobby_config: _told, ...kept } = lobby;
    const made: WorldLobby = {
      ...{ ...kept, version_id, lobby_id: `lobby ${this.lobbies.size}`, is_closed: false, player_count: 0, changed: 0 },
      ...{ seats: new Set(), has_had_players: false, is_ready: false, is_ending: false, create_ms: this.now_ms },
      ...{ idle_since_ms: this.now_ms, stop_ms: undefined, stop_reason: undefined },
    };
    this.lobbies.set(made.lobby_id, made);
    this.running.set(made.lobby_id, made);
    for (const creator of first_players) {
      this.#sit(made, playerIdsOf(creator), creator.client.name);
      this.line.leave(creator.ticket);
    }
    this.#change(made);
    const most = first_players.some(({ others = [] }) => others.length > 0) ? made.max_players_party : 0;
    if (made.player_count > Math.max(most, made.max_players_normal)) this.fault(`${made.lobby_id} is founded too full`);
    return { made, over_limit: this.#over_limit(others) };
  }

  ready(lobby: WorldLobby): void {
    if (lobby.is_ready) return;
    lobby.is_ready = true;
    for (const player_id of lobby.seats) {
      const visit = this.seated.get(player_id);
      if (visit && !visit.is_connected) visit.deadline_ms = this.now_ms + SEAT_TIMEOUT_MS;
    }
    this.#change(lobby);
  }

  setClosed(lobby: WorldLobby, is_closed: boolean): void {
    lobby.is_closed = is_closed;
    this.#change(lobby);
  }

  remove(player_id: string, remove_reason: string): void {
    const visit = this.seated.get(player_id);
    const lobby = visit && this.lobbies.get(visit.lobby_id);
    if (!visit || !lobby) return;
    visit.remove_reason = remove_reason;
    this.seated.delete(player_id);
    if (!lobby.seats.delete(player_id)) this.fault(`${player_id} did not sit where his visit is`);
    if (lobby.seats.size === 0 && lobby.stop_reason === undefined) lobby.idle_since_ms = this.now_ms;
    this.#change(lobby);
  }

  stop(lobby: WorldLobby, stop_reason: string): void {
    lobby.stop_reason = stop_reason;
    lobby.stop_ms = this.now_ms;
    this.running.delete(lobby.lobby_id);
    for (const player_id of [...lobby.seats]) this.remove(player_id, 'lobby_stopped');
    this.#change(lobby);
  }

  /** What the background work ends when its time has come. */
  reconcile(idle_max: number): void {
    for (const lobby of [...this.running.values()]) {
      if (lobby.is_ending) this.stop(lobby, 'server_ended');
      else if (!lobby.is_ready && lobby.create_ms < this.now_ms - READY_TIMEOUT_MS)
        this.stop(lobby, 'not_ready_in_time');
    }
    for (const [player_id, { is_connected, deadline_ms = Infinity, create_ms }] of [...this.seated]) {
      if (!is_connected && deadline_ms <= this.now_ms) this.remove(player_id, 'seat_expired');
      else if (create_ms <= this.now_ms - PLAYER_TIMEOUT_MS) this.remove(player_id, 'timed_out');
    }
    const idle = [...this.running.values()]
      .filter(({ idle_since_ms }) => idle_since_ms !== undefined)
      .toSorted((one, other) => (one.idle_since_ms ?? 0) - (other.idle_since_ms ?? 0));
    for (const lobby of surplusLobbies(idle, () => idle_max)) {
      if (lobby.seats.size > 0) this.fault(`${lobby.lobby_id} is trimmed while somebody sits there`);
      this.stop(lobby, 'idle');
    }
    for (const group of Map.groupBy(idle, ({ game_mode, region }) => `${game_mode} ${region}`).values()) {
      const left = group.filter(({ stop_reason }) => stop_reason === undefined);
      if (left.length !== Math.min(idle_max, group.length))
        this.fault(`${left.length} of ${group.length} idle are kept`);
    }
  }

  /** Counts equal seats, and every visit that goes on has its seat in one lobby that runs. */
  check(): void {
    let seats = 0;
    for (const { lobby_id, player_count, seats: its, stop_reason } of this.lobbies.values()) {
      seats += its.size;
      if (player_count !== its.size) this.fault(`${lobby_id} counts ${player_count} and seats ${its.size}`);
      if (stop_reason !== undefined && its.size > 0) this.fault(`${lobby_id} has stopped with players`);
    }
    if (seats !== this.seated.size) this.fault(`${this.seated.size} players on ${seats} seats`);
    for (const [player_id, { lobby_id, remove_reason }] of this.seated) {
      const sits = this.running.get(lobby_id)?.seats.has(player_id);
      if (!sits || remove_reason !== undefined) this.fault(`${player_id} does not sit in ${lobby_id}`);
    }
    for (const client of ['near', 'far']) {
      if (this.countOf(client) > this.players_max) this.fault(`${this.countOf(client)} players of ${client}`);
    }
    if (this.running.size > this.lobby_count_max) this.fault(`${this.running.size} lobbies run`);
  }
}

/** Whether there is an order in which each has room by his own maximum: whoever has the lowest comes first. */
function hasRoom(lobby: WorldLobby, its: Plan['seats']): boolean {
  if (lobby.is_closed && its.some(({ request }) => request.kind === 'find')) return false;
  let count = lobby.seats.size;
  return its
    .map(({ request }) => ({ most: maximumFor(lobby, request), seats: playerIdsOf(request).length }))
    .toSorted((one, other) => one.most - other.most)
    .every(({ most, seats }) => {
      count += seats;
      return count <= most;
    });
}

export function maximumFor(lobby: OpenLobby, request: SeatRequest): number {
  if (request.kind === 'join') return lobby.max_players_direct;
  return playerIdsOf(request).length > 1 ? lobby.max_players_party : lobby.max_players_normal;
}
