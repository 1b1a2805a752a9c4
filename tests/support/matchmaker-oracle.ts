import type { CreateBody, FindBody } from '../../src/features/lobbies/wire.ts';
import { OWN_REGION, TIMES } from './matchmaker.ts';

type Publicity = 'public' | 'private';
type Maxima = Record<'normal' | 'direct' | 'party', number>;

/** A game mode, as far as seats are concerned. */
interface Mode {
  maxima: Maxima;
  regions: string[];
  is_taggable: boolean;
  is_joinable: boolean;
  /** Which lobbies of their own players may make. */
  creates: Publicity[];
  idle_max: number;
}

const REGIONS = [OWN_REGION, 'far'];
const open = { regions: REGIONS, is_taggable: true, is_joinable: true, creates: ['public', 'private'] as Publicity[] };

/** The two versions that a namespace moves between, by the names of their game modes. */
export const VERSIONS: Record<'old' | 'new', Record<string, Mode>> = {
  old: {
    wide: { ...open, maxima: { normal: 2, direct: 3, party: 4 }, idle_max: 0 },
    small: { ...open, maxima: { normal: 3, direct: 4, party: 2 }, regions: [OWN_REGION], idle_max: 1, creates: [] },
  },
  new: {
    wide: { ...open, maxima: { normal: 4, direct: 2, party: 3 }, idle_max: 1, creates: ['private'] },
    small: { ...open, maxima: { normal: 2, direct: 2, party: 2 }, idle_max: 0, is_taggable: false, is_joinable: false },
  },
};
export type VersionName = keyof typeof VERSIONS;

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
  /** As soon as he has been answered. */
  token: string | undefined;
  create_ms: number;
  deadline_ms: number | undefined;
  state: 'awaited' | 'connected' | 'gone';
  remove_reason: string | undefined;
}

/** A lobby that is to be made. */
export type Made = Pick<OracleLobby, 'version' | 'game_mode' | 'region' | 'tags' | 'publicity'>;

/** What a request must come to: one of these lobbies, a new one, or a refusal with one of these codes. */
export type Expected = { among: OracleLobby[] } | { makes: Made } | { codes: string[] };

/** The matchmaker in a namespace as it should be: one thing after the other, plain lists, nothing remembered or shared. */
export class Oracle {
  readonly lobbies: OracleLobby[] = [];
  readonly players: OraclePlayer[] = [];
  version: VersionName = 'old';

  constructor(
    readonly lobby_count_max: number,
    public now_ms: number,
  ) {}

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

  find(body: FindBody): Expected {
    const code = this.#refusal(body.game_modes, body);
    if (code) return { codes: [code] };
    const { players = 1 } = body;
    const who = whoOf(players);
    const open = this.lobbies.filter((lobby) => this.suits(lobby, body) && this.free(lobby, who) >= players);
    const least = Math.min(...open.map((lobby) => this.free(lobby, who)));
    if (open.length > 0) return { among: open.filter((lobby) => this.free(lobby, who) === least) };
    const makes = this.target(body);
    if (!makes) return { codes: ['MATCHMAKER_AUTO_CREATE_FAILED'] };
    if (body.prevent_auto_create_lobby) return { codes: ['MATCHMAKER_NO_AVAILABLE_LOBBIES'] };
    return this.#make(makes);
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

  create({ game_mode, region, publicity: wanted, tags = {}, players }: CreateBody): Expected {
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
    return this.#make({ version: this.version, game_mode, region: place, tags, publicity });
  }

  join(lobby: OracleLobby | undefined, players = 1): Expected {
    if (!lobby) return { codes: ['MATCHMAKER_LOBBY_NOT_FOUND'] };
    if (lobby.stop_reason !== undefined) return { codes: ['MATCHMAKER_LOBBY_STOPPED'] };
    if (!VERSIONS[lobby.version][lobby.game_mode]?.is_joinable) return { codes: ['MATCHMAKER_JOIN_DISABLED'] };
    const is_full = this.free(lobby, 'direct') < players;
    // Nobody has noticed that its server is to end: being full is as true.
    if (lobby.is_ending) return { codes: ['MATCHMAKER_LOBBY_STOPPED', ...(is_full ? ['MATCHMAKER_LOBBY_FULL'] : [])] };
    return is_full ? { codes: ['MATCHMAKER_LOBBY_FULL'] } : { among: [lobby] };
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

  seat(lobby: OracleLobby, player_ids: string[]): void {
    lobby.idle_since_ms = undefined;
    const deadline_ms = lobby.is_ready ? this.now_ms + TIMES.seat_timeout_ms : undefined;
    const ends = { token: undefined, remove_reason: undefined };
    for (const player_id of player_ids) {
      this.players.push({ player_id, lobby, create_ms: this.now_ms, deadline_ms, state: 'awaited', ...ends });
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
    const isKept = (one: OracleLobby) => one.version === this.version && one.publicity === null && !one.is_closed;
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

  #make(makes: Made): Expected {
    const is_full = this.running().length >= this.lobby_count_max;
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
