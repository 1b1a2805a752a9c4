import type { LobbyTraits } from './matchmaking-rules.ts';

export interface LobbyState extends LobbyTraits {
  lobby_id: string;
  create_ms: number;
  is_ready: boolean;
  is_closed: boolean;
  closed_ms: number | undefined;
  /** Whether its server is ending, which nothing has noticed yet. */
  is_ending: boolean;
  /** The players with a seat. */
  seated: Set<PlayerState>;
  /** The number of its taken seats. */
  readonly taken: number;
  /** Equal to `create_ms` while no player has come. */
  idle_since_ms: number | undefined;
  stop_ms: number | undefined;
  stop_reason: string | undefined;
}

export type Client = string | number;

export interface PlayerState {
  player_id: string;
  lobby: LobbyState;
  client: Client;
  create_ms: number;
  /** When an awaited player loses the seat; undefined while the lobby is not ready. */
  deadline_ms: number | undefined;
  state: 'awaited' | 'connected' | 'gone';
  remove_reason: string | undefined;
  /** Set once the request is answered. */
  token: string | undefined;
}

export interface Times {
  seat_timeout_ms: number;
  ready_timeout_ms: number;
  player_timeout_ms: number;
}

interface Limits {
  lobby_count_max: number;
  /** The players that a client may have. */
  players_max: number;
  times: Times;
}

export const isUntouched = ({ idle_since_ms, create_ms }: LobbyState): boolean => idle_since_ms === create_ms;

const PREPARES_WITHIN_MS = 300_000;
/** Returns whether a lobby is open; or no player came, and it is not ready or was closed a short time ago. */
export function isOpenOrPreparing(lobby: LobbyState, now_ms: number): boolean {
  const { closed_ms, is_ready } = lobby;
  if (closed_ms === undefined) return true;
  return isUntouched(lobby) && (!is_ready || now_ms - closed_ms < PREPARES_WITHIN_MS);
}

/** The lobbies and players of a namespace in plain lists, and how seats and lobbies end. */
export abstract class MatchmakingState {
  readonly lobbies: LobbyState[] = [];
  readonly players: PlayerState[] = [];
  readonly #lobbies_by_id = new Map<string, LobbyState>();
  readonly #seated = new Map<string, PlayerState>();
  readonly #running = new Set<LobbyState>();
  now_ms: number;
  /** The version that the namespace is on. */
  abstract version: string;

  constructor(
    readonly limits: Limits,
    now_ms: number,
  ) {
    this.now_ms = now_ms;
  }

  /** Returns the number of empty lobbies that a game mode keeps in a region. */
  protected abstract idleMaxOf(game_mode: string): number;

  /** Called after each change of a lobby. */
  protected onChange(_lobby: LobbyState): void {}

  lobby(lobby_id: string): LobbyState | undefined {
    return this.#lobbies_by_id.get(lobby_id);
  }

  running(): LobbyState[] {
    return [...this.#running];
  }

  get running_count(): number {
    return this.#running.size;
  }

  /** A player that has a seat. */
  seatedPlayer(player_id: string): PlayerState | undefined {
    return this.#seated.get(player_id);
  }

  seatedPlayers(): PlayerState[] {
    return [...this.#seated.values()];
  }

  /** Returns the number of a client's players with a seat. */
  countOf(client: Client): number {
    return this.seatedPlayers().filter((player) => player.client === client).length;
  }

  createLobby(lobby_id: string, { version, game_mode, region, tags, publicity, maxima }: LobbyTraits): LobbyState {
    const lobby: LobbyState = {
      lobby_id,
      version,
      game_mode,
      region,
      tags,
      publicity,
      maxima,
      create_ms: this.now_ms,
      is_ready: false,
      is_closed: false,
      closed_ms: undefined,
      is_ending: false,
      idle_since_ms: this.now_ms,
      stop_ms: undefined,
      stop_reason: undefined,
      seated: new Set(),
      get taken() {
        return this.seated.size;
      },
    };
    this.lobbies.push(lobby);
    this.#lobbies_by_id.set(lobby_id, lobby);
    this.#running.add(lobby);
    this.onChange(lobby);
    return lobby;
  }

  seat(lobby: LobbyState, player_ids: string[], client: Client): void {
    lobby.idle_since_ms = undefined;
    const deadline_ms = lobby.is_ready ? this.now_ms + this.limits.times.seat_timeout_ms : undefined;
    for (const player_id of player_ids) {
      const ends = { state: 'awaited', token: undefined, remove_reason: undefined } as const;
      const player: PlayerState = { player_id, lobby, client, create_ms: this.now_ms, deadline_ms, ...ends };
      this.players.push(player);
      this.#seated.set(player_id, player);
      lobby.seated.add(player);
    }
    this.onChange(lobby);
  }

  ready(lobby: LobbyState): void {
    if (lobby.is_ready) return;
    lobby.is_ready = true;
    for (const player of lobby.seated) {
      if (player.state === 'awaited') player.deadline_ms = this.now_ms + this.limits.times.seat_timeout_ms;
    }
    this.onChange(lobby);
  }

  setClosed(lobby: LobbyState, is_closed: boolean): void {
    lobby.closed_ms = is_closed ? (lobby.closed_ms ?? this.now_ms) : undefined;
    lobby.is_closed = is_closed;
    this.onChange(lobby);
  }

  /** Connects a player to a lobby. Returns the code of the refusal, if any. */
  connect(player: PlayerState, lobby: LobbyState): string | undefined {
    if (player.lobby !== lobby) return 'MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY';
    if (player.remove_reason === 'seat_expired') return 'MATCHMAKER_PLAYER_REGISTRATION_EXPIRED';
    if (player.state === 'gone') return 'MATCHMAKER_PLAYER_REMOVED';
    if (player.state === 'connected') return 'MATCHMAKER_PLAYER_ALREADY_CONNECTED';
    if (this.#isPast(player.deadline_ms)) return 'MATCHMAKER_PLAYER_REGISTRATION_EXPIRED';
    player.state = 'connected';
    return undefined;
  }

  /** Keeps the seat of a player whose connection was lost. */
  loseConnection(player: PlayerState, within_ms: number): void {
    if (player.state === 'connected') Object.assign(player, { state: 'awaited', deadline_ms: this.now_ms + within_ms });
  }

  remove(players: PlayerState[], remove_reason: string): void {
    for (const player of players) {
      if (player.state === 'gone') continue;
      Object.assign(player, { state: 'gone', remove_reason });
      this.#seated.delete(player.player_id);
      const { lobby } = player;
      lobby.seated.delete(player);
      if (lobby.seated.size === 0 && lobby.stop_reason === undefined) lobby.idle_since_ms = this.now_ms;
      this.onChange(lobby);
    }
  }

  stop(lobby: LobbyState, stop_reason: string): void {
    Object.assign(lobby, { stop_reason, stop_ms: this.now_ms });
    this.#running.delete(lobby);
    this.remove([...lobby.seated], 'lobby_stopped');
    this.onChange(lobby);
  }

  /** Runs one step of the background work. Of lobbies that became empty at one moment any may end: `hasEnded` returns which did. */
  reconcile(hasEnded: (lobby_id: string) => boolean): void {
    this.endOverdue();
    this.endSurplus(hasEnded);
  }

  /** Ends lobbies and seats whose time is over, and empty lobbies that no game mode keeps. */
  protected endOverdue(): void {
    const { ready_timeout_ms, player_timeout_ms } = this.limits.times;
    for (const lobby of this.running().filter(({ is_ending }) => is_ending)) this.stop(lobby, 'server_ended');
    const isLate = (one: LobbyState) => !one.is_ready && one.create_ms < this.now_ms - ready_timeout_ms;
    for (const lobby of this.running().filter(isLate)) this.stop(lobby, 'not_ready_in_time');
    const seated = this.seatedPlayers();
    const isExpired = ({ state, deadline_ms }: PlayerState) => state === 'awaited' && this.#isPast(deadline_ms);
    this.remove(seated.filter(isExpired), 'seat_expired');
    const hasPlayedLong = ({ create_ms }: PlayerState) => create_ms <= this.now_ms - player_timeout_ms;
    this.remove(seated.filter(hasPlayedLong), 'timed_out');
    const idle = new Set(this.idleLobbies());
    for (const lobby of this.running()) {
      if (lobby.idle_since_ms !== undefined && !idle.has(lobby)) this.stop(lobby, 'idle');
    }
  }

  /**
   * Ends empty lobbies beyond those that their game mode keeps, apart from as many closed ones: first those that are not
   * ready, then the longest empty. While there is no room for another lobby, no closed one is kept.
   */
  protected endSurplus(hasEnded: (lobby_id: string) => boolean): void {
    const rank = (one: LobbyState) => (one.idle_since_ms ?? 0) - (hasEnded(one.lobby_id) ? 0.5 : 0);
    const has_room = this.running_count < this.limits.lobby_count_max;
    const isForFinds = (one: LobbyState) => isOpenOrPreparing(one, this.now_ms);
    const pools = Map.groupBy(this.idleLobbies(), (one) => `${one.game_mode} ${one.region} ${isForFinds(one)}`);
    for (const pool of pools.values()) {
      const [first] = pool;
      const kept = first && (has_room || isForFinds(first)) ? this.idleMaxOf(first.game_mode) : 0;
      const surplus = pool.length - kept;
      const in_order = pool.toSorted(
        (one, other) => Number(one.is_ready) - Number(other.is_ready) || rank(one) - rank(other),
      );
      for (const lobby of in_order.slice(0, Math.max(0, surplus))) this.stop(lobby, 'idle');
    }
  }

  /** Returns the empty lobbies of the current version that may be kept, the longest empty first. */
  idleLobbies(): LobbyState[] {
    return this.running()
      .filter((lobby) => lobby.idle_since_ms !== undefined && this.#mayStayEmpty(lobby))
      .toSorted((one, other) => (one.idle_since_ms ?? 0) - (other.idle_since_ms ?? 0));
  }

  /** Not one that a player created. */
  #mayStayEmpty({ version, publicity }: LobbyState): boolean {
    return version === this.version && publicity === null;
  }

  #isPast(moment_ms: number | undefined): boolean {
    return moment_ms !== undefined && moment_ms <= this.now_ms;
  }
}
