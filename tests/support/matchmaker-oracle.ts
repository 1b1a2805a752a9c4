import type { CreateBody, FindBody } from '../../src/features/lobbies/wire.ts';
import { TIMES } from './matchmaker.ts';
import { type Maxima, type Publicity, REGIONS, VERSIONS, type VersionName } from './matchmaker-modes.ts';

export interface OracleLobby {
  lobby_id: string;
  version: VersionName;
  game_mode: string;
  region: string;
  tags: Record<string, string>;
  publicity: Publicity | null;
  maxima: Maxima;
  create_ms: number;
  is_ready: boolean;
  is_closed: boolean;
  /** Its server is to end; nobody has noticed yet. */
  is_ending: boolean;
  idle_since_ms: number | undefined;
  stop_reason: string | undefined;
}

export interface OraclePlayer {
  player_id: string;
  lobby: OracleLobby;
  client: number;
  /** As soon as he has been answered. */
  token: string | undefined;
  create_ms: number;
  deadline_ms: number | undefined;
  state: 'awaited' | 'connected' | 'gone';
  remove_reason: string | undefined;
}

/** A find that waits for its turn. */
export interface OracleWaiter {
  ticket: string;
  body: FindBody;
  client: number;
}

/** A lobby that is to be made. */
export type Made = Pick<OracleLobby, 'version' | 'game_mode' | 'region' | 'tags' | 'publicity'>;

/** What a request must come to: one of these lobbies, a new one, or a refusal with one of these codes. */
export type Expected = { among: OracleLobby[] } | { makes: Made } | { codes: string[] };

/** The matchmaker in a namespace as it should be: one thing after the other, plain lists, nothing remembered or shared. */
export class Oracle {
  readonly lobbies: OracleLobby[] = [];
  readonly players: OraclePlayer[] = [];
  /** The first who came first. */
  queue: OracleWaiter[] = [];
  version: VersionName = 'old';

  constructor(
    readonly lobby_count_max: number,
    public now_ms: number,
    readonly players_max: number,
  ) {}

  /** Whether so many more are too many of a client. */
  isOver(client: number, players = 1): boolean {
    const its = this.players.filter((one) => one.client === client && one.state !== 'gone');
    return its.length + players > this.players_max;
  }

  /** Whether one of those who wait could ever sit in a lobby. */
  isAwaited(lobby: Made & Pick<OracleLobby, 'maxima'>, before: OracleWaiter[]): boolean {
    return before.some(
      ({ body }) =>
        lobby.version === this.version &&
        lobby.publicity !== 'private' &&
        body.game_modes.includes(lobby.game_mode) &&
        this.#searched(body).includes(lobby.region) &&
        Object.entries(body.tags ?? {}).every(([name, value]) => lobby.tags[name] === value) &&
        (body.players ?? 1) <= lobby.maxima[whoOf(body.players ?? 1)],
    );
  }

  seated({ lobby_id }: OracleLobby): OraclePlayer[] {
    return this.players.filter(({ lobby, state }) => lobby.lobby_id === lobby_id && state !== 'gone');
  }

  running(): OracleLobby[] {
    return this.lobbies.filter(({ stop_reason }) => stop_reason === undefined);
  }

  free(lobby: OracleLobby, who: keyof Maxima): number {
    return lobby.maxima[who] - this.seated(lobby).length;
  }

  /** Whether a find may come to a lobby, places aside. */
  suits(lobby: OracleLobby, body: FindBody): boolean {
    return (
      lobby.stop_reason === undefined &&
      !lobby.is_ending &&
      !lobby.is_closed &&
      lobby.publicity !== 'private' &&
      lobby.version === this.version &&
      body.game_modes.includes(lobby.game_mode) &&
      this.#searched(body).includes(lobby.region) &&
      hasTags(lobby, body)
    );
  }

  /** `before`: those who wait and have come before. */
  find(body: FindBody, client: number, before = this.queue): Expected {
    const code = this.#refusal(body.game_modes, body);
    if (code) return { codes: [code] };
    return this.#admit(this.#search(body, before), client, body.players);
  }

  #search(body: FindBody, before: OracleWaiter[]): Expected {
    const { players = 1 } = body;
    const who = whoOf(players);
    const open = this.lobbies.filter(
      (lobby) => this.suits(lobby, body) && this.free(lobby, who) >= players && !this.isAwaited(lobby, before),
    );
    const least = Math.min(...open.map((lobby) => this.free(lobby, who)));
    if (open.length > 0) return { among: open.filter((lobby) => this.free(lobby, who) === least) };
    const makes = this.target(body);
    if (!makes) return { codes: ['MATCHMAKER_AUTO_CREATE_FAILED'] };
    if (body.prevent_auto_create_lobby) return { codes: ['MATCHMAKER_NO_AVAILABLE_LOBBIES'] };
    return this.#make(makes, before);
  }

  /** Whoever has too many players hears that, where he does not hear another no that is as true. */
  #admit(expected: Expected, client: number, players = 1): Expected {
    if (!this.isOver(client, players)) return expected;
    const code = 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE';
    return { codes: 'codes' in expected ? [...expected.codes, code] : [code] };
  }

  /** The lobby that a find makes when there is no place: of the first mode that is offered and holds all who come. */
  target({ game_modes, regions, tags = {}, players = 1 }: FindBody): Made | undefined {
    for (const game_mode of game_modes) {
      const mode = VERSIONS[this.version][game_mode];
      const region = this.#searched({ game_modes, regions }).find((slug) => mode?.regions.includes(slug));
      if (mode && region && mode.maxima[whoOf(players)] >= players) {
        return { version: this.version, game_mode, region, tags, publicity: null };
      }
    }
    return undefined;
  }

  create({ game_mode, region, publicity: wanted, tags = {}, players }: CreateBody, client: number): Expected {
    const code = this.#refusal([game_mode], { tags, players });
    if (code) return { codes: [code] };
    const mode = VERSIONS[this.version][game_mode];
    const { creates = [], regions = [] } = mode ?? {};
    if (creates.length === 0) return { codes: ['MATCHMAKER_CUSTOM_LOBBIES_DISABLED'] };
    const publicity = wanted ?? (creates.includes('public') ? 'public' : 'private');
    if (!creates.includes(publicity)) return { codes: ['MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID'] };
    const place = region ?? regions[0] ?? '';
    if (!REGIONS.includes(place)) return { codes: ['MATCHMAKER_REGION_NOT_FOUND'] };
    if (!regions.includes(place)) return { codes: ['MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE'] };
    const made = this.#make({ version: this.version, game_mode, region: place, tags, publicity }, this.queue);
    return this.#admit(made, client, players);
  }

  join(lobby: OracleLobby | undefined, client: number, players = 1): Expected {
    if (!lobby) return { codes: ['MATCHMAKER_LOBBY_NOT_FOUND'] };
    if (lobby.stop_reason !== undefined) return { codes: ['MATCHMAKER_LOBBY_STOPPED'] };
    if (!VERSIONS[lobby.version][lobby.game_mode]?.is_joinable) return { codes: ['MATCHMAKER_JOIN_DISABLED'] };
    const is_full = this.free(lobby, 'direct') < players;
    // Nobody has noticed that its server is to end: being full is as true.
    const full = is_full ? ['MATCHMAKER_LOBBY_FULL'] : [];
    if (lobby.is_ending) return this.#admit({ codes: ['MATCHMAKER_LOBBY_STOPPED', ...full] }, client, players);
    return this.#admit(is_full ? { codes: full } : { among: [lobby] }, client, players);
  }

  open(lobby_id: string, made: Made): OracleLobby {
    const mode = VERSIONS[made.version][made.game_mode];
    if (!mode) throw new Error(`there is no mode ${made.game_mode}`);
    const states = { is_ready: false, is_closed: false, is_ending: false };
    const ends = { idle_since_ms: undefined, stop_reason: undefined };
    const lobby = { lobby_id, ...made, maxima: mode.maxima, create_ms: this.now_ms, ...states, ...ends };
    this.lobbies.push(lobby);
    return lobby;
  }

  seat(lobby: OracleLobby, player_ids: string[], client: number): void {
    lobby.idle_since_ms = undefined;
    const deadline_ms = lobby.is_ready ? this.now_ms + TIMES.seat_timeout_ms : undefined;
    const ends = { token: undefined, remove_reason: undefined };
    for (const player_id of player_ids) {
      this.players.push({ player_id, lobby, client, create_ms: this.now_ms, deadline_ms, state: 'awaited', ...ends });
    }
  }

  ready(lobby: OracleLobby): void {
    if (lobby.is_ready) return;
    lobby.is_ready = true;
    const waiting = this.seated(lobby).filter(({ state }) => state === 'awaited');
    for (const player of waiting) player.deadline_ms = this.now_ms + TIMES.seat_timeout_ms;
  }

  /** What somebody hears whose token is shown; undefined when he is let in. */
  connect(player: OraclePlayer, lobby: OracleLobby): string | undefined {
    if (player.lobby !== lobby) return 'MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY';
    if (player.remove_reason === 'seat_expired') return 'MATCHMAKER_PLAYER_REGISTRATION_EXPIRED';
    if (player.state === 'gone') return 'MATCHMAKER_PLAYER_REMOVED';
    if (player.state === 'connected') return 'MATCHMAKER_PLAYER_ALREADY_CONNECTED';
    if (isPast(player.deadline_ms, this.now_ms)) return 'MATCHMAKER_PLAYER_REGISTRATION_EXPIRED';
    player.state = 'connected';
    return undefined;
  }

  /** The seat of somebody whose connection was lost is kept for him. */
  lose(player: OraclePlayer, within_ms: number): void {
    if (player.state === 'connected') Object.assign(player, { state: 'awaited', deadline_ms: this.now_ms + within_ms });
  }

  remove(players: OraclePlayer[], remove_reason: string): void {
    const leaving = players.filter(({ state }) => state !== 'gone');
    for (const player of leaving) Object.assign(player, { state: 'gone', remove_reason });
    for (const lobby of new Set(leaving.map((player) => player.lobby))) {
      if (this.seated(lobby).length === 0 && lobby.stop_reason === undefined) lobby.idle_since_ms = this.now_ms;
    }
  }

  stop(lobby: OracleLobby, stop_reason: string): void {
    lobby.stop_reason = stop_reason;
    this.remove(this.seated(lobby), 'lobby_stopped');
  }

  /** One step of the background work. Of lobbies that became empty at one moment any may go: `hasStopped` says which did. */
  reconcile(hasStopped: (lobby_id: string) => boolean): void {
    const { ready_timeout_ms, player_timeout_ms } = TIMES;
    for (const lobby of this.running().filter(({ is_ending }) => is_ending)) this.stop(lobby, 'server_ended');
    const isLate = (one: OracleLobby) => !one.is_ready && one.create_ms < this.now_ms - ready_timeout_ms;
    for (const lobby of this.running().filter(isLate)) this.stop(lobby, 'not_ready_in_time');
    const late = this.players.filter((one) => one.state === 'awaited' && isPast(one.deadline_ms, this.now_ms));
    this.remove(late, 'seat_expired');
    this.remove(
      this.players.filter(({ create_ms }) => create_ms <= this.now_ms - player_timeout_ms),
      'timed_out',
    );
    const idle = this.running().filter(({ idle_since_ms }) => idle_since_ms !== undefined);
    const isUntouched = ({ idle_since_ms, create_ms }: OracleLobby) => idle_since_ms === create_ms;
    const isKept = (one: OracleLobby) =>
      one.version === this.version && one.publicity === null && (!one.is_closed || isUntouched(one));
    for (const lobby of idle.filter((one) => !isKept(one))) this.stop(lobby, 'idle');
    const groups = Map.groupBy(idle.filter(isKept), (one) => `${one.version} ${one.game_mode} ${one.region}`);
    for (const group of groups.values()) this.#trim(group, hasStopped);
  }

  #trim(group: OracleLobby[], hasStopped: (lobby_id: string) => boolean): void {
    const kept = VERSIONS[this.version][group[0]?.game_mode ?? '']?.idle_max ?? 0;
    const rank = (one: OracleLobby) => (one.idle_since_ms ?? 0) - (hasStopped(one.lobby_id) ? 0.5 : 0);
    const longest_first = group.toSorted((one, other) => rank(one) - rank(other));
    for (const lobby of longest_first.slice(0, Math.max(0, group.length - kept))) this.stop(lobby, 'idle');
  }

  #make(makes: Made, before: OracleWaiter[]): Expected {
    const is_full = this.running().length >= this.lobby_count_max || before.length > 0;
    return is_full ? { codes: ['MATCHMAKER_TOO_MANY_LOBBIES'] } : { makes };
  }

  /** Regions that a find looks into: those it names, else the first that offers anything it wants. */
  #searched({ game_modes, regions }: Pick<FindBody, 'game_modes' | 'regions'>): string[] {
    const offers = (region: string) =>
      game_modes.some((name) => VERSIONS[this.version][name]?.regions.includes(region));
    return regions ?? REGIONS.filter(offers).slice(0, 1);
  }

  /** What is wrong with a request whatever lobbies there are. */
  #refusal(
    game_modes: string[],
    { tags = {}, regions = [], players = 1 }: Pick<FindBody, 'tags' | 'regions' | 'players'>,
  ): string | undefined {
    const modes = game_modes.map((name) => VERSIONS[this.version][name]);
    if (modes.includes(undefined)) return 'MATCHMAKER_GAME_MODE_NOT_FOUND';
    const is_untaggable = modes.some((mode) => !mode?.is_taggable);
    if (Object.keys(tags).length > 0 && is_untaggable) return 'MATCHMAKER_TAGS_DISABLED';
    const fits = modes.some((mode) => (mode?.maxima.party ?? 0) >= players);
    if (players > 1 && !fits) return 'MATCHMAKER_PARTY_TOO_LARGE';
    return regions.some((region) => !REGIONS.includes(region)) ? 'MATCHMAKER_REGION_NOT_FOUND' : undefined;
  }
}

/** By which maximum a find is counted. */
export const whoOf = (players: number) => (players > 1 ? 'party' : 'normal');

const isPast = (moment_ms: number | undefined, now_ms: number) => moment_ms !== undefined && moment_ms <= now_ms;

function hasTags(lobby: OracleLobby, { tags = {} }: FindBody): boolean {
  return Object.entries(tags).every(([name, value]) => lobby.tags[name] === value);
}
