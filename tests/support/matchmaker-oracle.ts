import type { CreateBody, FindBody } from '../../src/features/lobbies/wire.ts';
import { TIMES } from './matchmaker.ts';
import { modeOf, REGIONS, type VersionName } from './matchmaker-modes.ts';
import {
  type Arrival,
  fullest,
  hasRoom,
  isOverLimit,
  isReserved,
  type LobbyTraits,
  maximumFor,
  mayCreateLobby,
  type Search,
  suits,
} from './matchmaking-rules.ts';
import { type LobbyState, MatchmakingState } from './matchmaking-state.ts';

/** A find that waits for its turn. */
export interface OracleWaiter {
  ticket: string;
  body: FindBody;
  client: number;
}

/** What a request must come to: one of these lobbies, a new one, or a refusal with one of these codes. */
export type Expected = { among: LobbyState[] } | { makes: LobbyTraits } | { codes: string[] };

/** The matchmaker in a namespace as it should be: one request after the other, with nothing remembered or shared. */
export class Oracle extends MatchmakingState {
  /** The finds that wait, in the order in which they came. */
  queue: OracleWaiter[] = [];
  override version: VersionName = 'old';

  constructor(lobby_count_max: number, now_ms: number, players_max: number) {
    super({ lobby_count_max, players_max, times: TIMES }, now_ms);
  }

  protected override idleMaxOf(game_mode: string): number {
    return modeOf(this.version, game_mode)?.idle_max ?? 0;
  }

  /** Whether a client would have too many players with so many more. */
  isOver(client: number, players = 1): boolean {
    return isOverLimit({ seated: this.countOf(client), players_max: this.limits.players_max }, players);
  }

  /** Whether a find may get seats in a lobby, if it has any, while those of `before` wait. */
  isOpenTo(lobby: LobbyState, body: FindBody, before = this.queue): boolean {
    const is_running = lobby.stop_reason === undefined && !lobby.is_ending;
    const earlier = before.map((waiter) => this.#searchOf(waiter.body));
    return is_running && suits(lobby, this.#searchOf(body)) && !isReserved(lobby, earlier);
  }

  /** The lobbies in which a find may get its seats. */
  lobbiesFor(body: FindBody, before = this.queue): LobbyState[] {
    const arrival = findOf(body);
    return this.running().filter((lobby) => this.isOpenTo(lobby, body, before) && hasRoom(lobby, arrival));
  }

  /** What a find must come to while those of `before` wait. */
  find(body: FindBody, client: number, before = this.queue): Expected {
    const code = this.#refusal(body.game_modes, body);
    if (code) return { codes: [code] };
    return this.#admit(this.#search(body, before), client, body.players);
  }

  #search(body: FindBody, before: OracleWaiter[]): Expected {
    const chosen = fullest(this.lobbiesFor(body, before), body.players ?? 1);
    if (chosen.length > 0) return { among: chosen };
    const makes = this.target(body);
    if (!makes) return { codes: ['MATCHMAKER_AUTO_CREATE_FAILED'] };
    if (body.prevent_auto_create_lobby) return { codes: ['MATCHMAKER_NO_AVAILABLE_LOBBIES'] };
    return this.#make(makes, before);
  }

  /** A client with too many players is told so, unless another refusal is as true. */
  #admit(expected: Expected, client: number, players = 1): Expected {
    if (!this.isOver(client, players)) return expected;
    const code = 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE';
    return { codes: 'codes' in expected ? [...expected.codes, code] : [code] };
  }

  /** The lobby that a find creates: of the first mode that is offered and holds all of its players. */
  target(body: FindBody): LobbyTraits | undefined {
    const { regions, tags } = this.#searchOf(body);
    for (const game_mode of body.game_modes) {
      const mode = modeOf(this.version, game_mode);
      const region = regions.find((slug) => mode?.regions.includes(slug));
      const arrival = findOf(body);
      if (mode && region && maximumFor(mode, arrival) >= arrival.players) {
        return { version: this.version, game_mode, region, tags, publicity: null, maxima: mode.maxima };
      }
    }
    return undefined;
  }

  create({ game_mode, region, publicity: wanted, tags = {}, players }: CreateBody, client: number): Expected {
    const code = this.#refusal([game_mode], { tags, players });
    if (code) return { codes: [code] };
    const mode = modeOf(this.version, game_mode);
    if (!mode || mode.creates.length === 0) return { codes: ['MATCHMAKER_CUSTOM_LOBBIES_DISABLED'] };
    const { creates, regions, maxima } = mode;
    const publicity = wanted ?? (creates.includes('public') ? 'public' : 'private');
    if (!creates.includes(publicity)) return { codes: ['MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID'] };
    const place = region ?? regions[0] ?? '';
    if (!REGIONS.includes(place)) return { codes: ['MATCHMAKER_REGION_NOT_FOUND'] };
    if (!regions.includes(place)) return { codes: ['MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE'] };
    const created = this.#make(
      { version: this.version, game_mode, region: place, tags, publicity, maxima },
      this.queue,
    );
    return this.#admit(created, client, players);
  }

  join(lobby: LobbyState | undefined, client: number, players = 1): Expected {
    if (!lobby) return { codes: ['MATCHMAKER_LOBBY_NOT_FOUND'] };
    if (lobby.stop_reason !== undefined) return { codes: ['MATCHMAKER_LOBBY_STOPPED'] };
    if (!modeOf(lobby.version, lobby.game_mode)?.is_joinable) return { codes: ['MATCHMAKER_JOIN_DISABLED'] };
    const has_room = hasRoom(lobby, { kind: 'join', players });
    // Nothing has noticed yet that its server is to end, so being full is as true.
    const full = has_room ? [] : ['MATCHMAKER_LOBBY_FULL'];
    if (lobby.is_ending) return this.#admit({ codes: ['MATCHMAKER_LOBBY_STOPPED', ...full] }, client, players);
    return this.#admit(has_room ? { among: [lobby] } : { codes: full }, client, players);
  }

  #make(makes: LobbyTraits, before: OracleWaiter[]): Expected {
    const { lobby_count_max } = this.limits;
    const may = mayCreateLobby({ running: this.running_count, lobby_count_max, waiting_before: before.length });
    return may ? { makes } : { codes: ['MATCHMAKER_TOO_MANY_LOBBIES'] };
  }

  /** A find looks into the regions it names, else into the first that offers any of its modes. */
  #searchOf({ game_modes, regions, tags = {}, players = 1 }: FindBody): Search {
    const offers = (region: string) => game_modes.some((name) => modeOf(this.version, name)?.regions.includes(region));
    const searched = regions ?? REGIONS.filter(offers).slice(0, 1);
    return { version: this.version, game_modes, regions: searched, tags, players };
  }

  /** What is wrong with a request whatever lobbies there are. */
  #refusal(
    game_modes: string[],
    { tags = {}, regions = [], players = 1 }: Pick<FindBody, 'tags' | 'regions' | 'players'>,
  ): string | undefined {
    const modes = game_modes.map((name) => modeOf(this.version, name));
    if (modes.includes(undefined)) return 'MATCHMAKER_GAME_MODE_NOT_FOUND';
    const is_untaggable = modes.some((mode) => !mode?.is_taggable);
    if (Object.keys(tags).length > 0 && is_untaggable) return 'MATCHMAKER_TAGS_DISABLED';
    const fits = modes.some((mode) => (mode?.maxima.party ?? 0) >= players);
    if (players > 1 && !fits) return 'MATCHMAKER_PARTY_TOO_LARGE';
    return regions.some((region) => !REGIONS.includes(region)) ? 'MATCHMAKER_REGION_NOT_FOUND' : undefined;
  }
}

export const findOf = ({ players = 1 }: Pick<FindBody, 'players'>): Arrival => ({ kind: 'find', players });
