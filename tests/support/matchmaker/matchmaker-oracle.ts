import type { CreateBody, FindBody } from '../../../src/features/lobbies/wire.ts';
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

/** A find that waits in the queue. */
export interface OracleWaiter {
  ticket: string;
  body: FindBody;
  client: number;
}

/** The expected result of a request: a seat in one of these lobbies, a new lobby, or a refusal with one of these codes. */
export type Expected = { among: LobbyState[] } | { creates: LobbyTraits } | { codes: string[] };

/** Predicts the matchmaker of a namespace, one request after the other, without caches and concurrency. */
export class Oracle extends MatchmakingState {
  /** The finds that wait, in the order of their arrival. */
  queue: OracleWaiter[] = [];
  override version: VersionName = 'old';

  constructor(lobby_count_max: number, now_ms: number, players_max: number) {
    super({ lobby_count_max, players_max, times: TIMES }, now_ms);
  }

  protected override idleMaxOf(game_mode: string): number {
    return modeOf(this.version, game_mode)?.idle_max ?? 0;
  }

  /** Returns whether a client would have too many players with these. */
  isOver(client: number, players = 1): boolean {
    return isOverLimit({ seated: this.countOf(client), players_max: this.limits.players_max }, players);
  }

  /** Returns whether a find may get free seats of a lobby while the finds of `before` wait. */
  isOpenTo(lobby: LobbyState, body: FindBody, before = this.queue): boolean {
    const is_running = lobby.stop_reason === undefined && !lobby.is_ending;
    const earlier = before.map((waiter) => this.#searchOf(waiter.body));
    return is_running && suits(lobby, this.#searchOf(body)) && !isReserved(lobby, earlier);
  }

  /** Returns the lobbies in which a find may get its seats. */
  lobbiesFor(body: FindBody, before = this.queue): LobbyState[] {
    const arrival = findOf(body);
    return this.running().filter((lobby) => this.isOpenTo(lobby, body, before) && hasRoom(lobby, arrival));
  }

  /** Returns the expected result of a find while the finds of `before` wait. */
  find(body: FindBody, client: number, before = this.queue): Expected {
    const code = this.#refusal(body.game_modes, body);
    if (code) return { codes: [code] };
    return this.#admit(this.#search(body, before), client, body.players);
  }

  #search(body: FindBody, before: OracleWaiter[]): Expected {
    const chosen = fullest(this.lobbiesFor(body, before), body.players ?? 1);
    if (chosen.length > 0) return { among: chosen };
    const creates = this.target(body);
    if (!creates) return { codes: ['MATCHMAKER_AUTO_CREATE_FAILED'] };
    if (body.prevent_auto_create_lobby) return { codes: ['MATCHMAKER_NO_AVAILABLE_LOBBIES'] };
    return this.#create(creates, before);
  }

  /** Adds the refusal of a client with too many players, if it has. Another refusal may come first. */
  #admit(expected: Expected, client: number, players = 1): Expected {
    if (!this.isOver(client, players)) return expected;
    const code = 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE';
    return { codes: 'codes' in expected ? [...expected.codes, code] : [code] };
  }

  /** Returns the lobby that a find creates: of the first mode that its regions offer and that holds all of its players. */
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
    const chosen = region ?? regions[0] ?? '';
    if (!REGIONS.includes(chosen)) return { codes: ['MATCHMAKER_REGION_NOT_FOUND'] };
    if (!regions.includes(chosen)) return { codes: ['MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE'] };
    const created = this.#create(
      { version: this.version, game_mode, region: chosen, tags, publicity, maxima },
      this.queue,
    );
    return this.#admit(created, client, players);
  }

  join(lobby: LobbyState | undefined, client: number, players = 1): Expected {
    if (!lobby) return { codes: ['MATCHMAKER_LOBBY_NOT_FOUND'] };
    if (lobby.stop_reason !== undefined) return { codes: ['MATCHMAKER_LOBBY_STOPPED'] };
    if (!modeOf(lobby.version, lobby.game_mode)?.is_joinable) return { codes: ['MATCHMAKER_JOIN_DISABLED'] };
    const has_room = hasRoom(lobby, { kind: 'join', players });
    // The end of its server may not be noticed yet, so it may also count as full.
    const full = has_room ? [] : ['MATCHMAKER_LOBBY_FULL'];
    if (lobby.is_ending) return this.#admit({ codes: ['MATCHMAKER_LOBBY_STOPPED', ...full] }, client, players);
    return this.#admit(has_room ? { among: [lobby] } : { codes: full }, client, players);
  }

  #create(creates: LobbyTraits, before: OracleWaiter[]): Expected {
    const { lobby_count_max } = this.limits;
    const may = mayCreateLobby({ running: this.running_count, lobby_count_max, waiting_before: before.length });
    return may ? { creates } : { codes: ['MATCHMAKER_TOO_MANY_LOBBIES'] };
  }

  /** Returns the search of a find: in the regions that it names, or in the first that offers one of its modes. */
  #searchOf({ game_modes, regions, tags = {}, players = 1 }: FindBody): Search {
    const offers = (region: string) => game_modes.some((name) => modeOf(this.version, name)?.regions.includes(region));
    const searched = regions ?? REGIONS.filter(offers).slice(0, 1);
    return { version: this.version, game_modes, regions: searched, tags, players };
  }

  /** Returns the refusal of a request that does not depend on lobbies. */
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
