import { ServiceError } from '../../../platform/errors.ts';
import { type Coordinates, kilometersBetween } from '../../coordinates.ts';
import type { ActionConfig, GameModeSettings } from '../../versions/versions.ts';
import type { CreateBody, FindBody, Whereabouts } from '../wire.ts';

const TAGS_MAX = 8;
const TAG_NAME_BYTES_MAX = 128;
const TAG_BYTES_MAX = 512;
const LOBBY_CONFIG_BYTES_MAX = 16 * 1_024;

/** A find that has been checked against the version: what may be looked for, and what is made if there is none. */
export interface Search {
  /** In the order asked for. */
  game_modes: string[];
  /** Slugs, in the order asked for. */
  regions: string[];
  tags: Record<string, string>;
  /** The lobby that is made when none has a place; undefined when none is to be made. */
  creates: NewLobby | undefined;
}

/** A lobby to be made. */
export interface NewLobby {
  game_mode: string;
  region: string;
  tags: Record<string, string>;
  max_players_normal: number;
  max_players_direct: number;
  max_players_party: number;
  /** Of a custom lobby. */
  publicity: 'public' | 'private' | null;
  /** Of a custom lobby: what its creator wants it to be, any JSON as text. */
  lobby_config: string | undefined;
}

/**
 * Checks a find, in the order of field-behaviour 4.5, and fills in what was left out. `regions`: slugs of all there are,
 * the one to recommend first.
 */
export function checkFind(body: FindBody, modes: ReadonlyMap<string, GameModeSettings>, regions: string[]): Search {
  const wanted = [...new Set(body.game_modes)].map((game_mode) => {
    const mode = modes.get(game_mode);
    if (!mode) throw new ServiceError('MATCHMAKER_GAME_MODE_NOT_FOUND', { game_mode });
    return mode;
  });
  if (wanted.length === 0) throw new ServiceError('MATCHMAKER_NO_GAME_MODE_PROVIDED', {});
  const tags = body.tags ?? {};
  checkTags(tags, wanted);
  if (body.max_players !== undefined) checkMaxPlayers(body.max_players, wanted);
  checkParty(body, wanted);
  const unknown = body.regions?.find((region) => !regions.includes(region));
  if (unknown !== undefined) throw new ServiceError('MATCHMAKER_REGION_NOT_FOUND', { region: unknown });
  const searched = body.regions ? [...new Set(body.regions)] : recommend(regions, wanted);
  const { mode, region } = findTarget(
    wanted.filter((one) => holdsParty(one, body)),
    searched,
  );
  const is_creating = body.prevent_auto_create_lobby !== true;
  // A lobby that may be made is of the target's mode; else any of the modes may give a seat.
  for (const { find } of is_creating ? [mode] : wanted) checkAction(find, 'MATCHMAKER_FIND_DISABLED');
  const found = {
    game_mode: mode.name,
    region,
    tags,
    ...maximaOf(mode, body),
    publicity: null,
    lobby_config: undefined,
  };
  // One that nobody finds a seat in is not searched, even where another one makes up for it.
  const game_modes = wanted.filter(({ find }) => find.enabled && !needsIdentity(find)).map(({ name }) => name);
  return { game_modes, regions: searched, tags, creates: is_creating ? found : undefined };
}

/** Checks a custom lobby, in the order of field-behaviour 4.12, and fills in what was left out. */
export function checkCreate(
  body: CreateBody,
  modes: ReadonlyMap<string, GameModeSettings>,
  regions: string[],
): NewLobby {
  const { game_mode, tags = {}, max_players } = body;
  const mode = modes.get(game_mode);
  if (!mode) throw new ServiceError('MATCHMAKER_GAME_MODE_NOT_FOUND', { game_mode });
  checkTags(tags, [mode]);
  if (max_players !== undefined) checkMaxPlayers(max_players, [mode]);
  checkParty(body, [mode]);
  const { create } = mode;
  if (!create?.enabled) throw new ServiceError('MATCHMAKER_CUSTOM_LOBBIES_DISABLED', {});
  checkIdentity(create);
  const { enable_public = false, enable_private = true } = create;
  const publicity = body.publicity ?? (enable_public ? 'public' : 'private');
  if (publicity === 'public' ? !enable_public : !enable_private) {
    throw new ServiceError('MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID', {
      reason: `the game mode does not allow ${publicity} lobbies`,
    });
  }
  const lobby_config = body.lobby_config === undefined ? undefined : JSON.stringify(body.lobby_config);
  if (Buffer.byteLength(lobby_config ?? '') > LOBBY_CONFIG_BYTES_MAX) {
    throw new ServiceError('MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID', {
      reason: `lobby_config has more than ${LOBBY_CONFIG_BYTES_MAX} bytes`,
    });
  }
  const region = chooseRegion(body.region, mode, regions);
  return { game_mode, region, tags, ...maximaOf(mode, body), publicity, lobby_config };
}

function chooseRegion(wanted: string | undefined, mode: GameModeSettings, regions: string[]): string {
  if (wanted !== undefined && !regions.includes(wanted)) {
    throw new ServiceError('MATCHMAKER_REGION_NOT_FOUND', { region: wanted });
  }
  const region = wanted ?? regions.find((slug) => mode.regions.has(slug));
  if (region === undefined) throw new ServiceError('MATCHMAKER_AUTO_CREATE_FAILED', {});
  if (mode.regions.has(region)) return region;
  throw new ServiceError('MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE', { region, game_mode: mode.name });
}

/** The maximum of the player's own stands for all three. */
function maximaOf(mode: GameModeSettings, { max_players }: { max_players?: number | undefined }) {
  return {
    max_players_normal: max_players ?? mode.max_players_normal,
    max_players_direct: max_players ?? mode.max_players_direct,
    max_players_party: max_players ?? mode.max_players_party,
  };
}

/** Throws when a game mode does not offer an action, or asks for what requests cannot carry. */
export function checkAction(
  action: ActionConfig,
  disabled: 'MATCHMAKER_FIND_DISABLED' | 'MATCHMAKER_JOIN_DISABLED',
): void {
  if (!action.enabled) throw new ServiceError(disabled, {});
  checkIdentity(action);
}

type MayNeedIdentity = Pick<ActionConfig, 'identity_requirement'>;

function checkIdentity(action: MayNeedIdentity): void {
  if (needsIdentity(action)) throw new ServiceError('MATCHMAKER_IDENTITY_REQUIRED', {});
}

function needsIdentity({ identity_requirement = 'none' }: MayNeedIdentity): boolean {
  return identity_requirement !== 'none';
}

function checkTags(tags: Record<string, string>, modes: GameModeSettings[]): void {
  const pairs = Object.entries(tags);
  if (pairs.length > TAGS_MAX) throw new ServiceError('MATCHMAKER_TOO_MANY_TAGS', { max: TAGS_MAX });
  for (const [name, value] of pairs) {
    if (Buffer.byteLength(name) > TAG_NAME_BYTES_MAX) {
      throw new ServiceError('MATCHMAKER_TAG_NAME_TOO_LONG', { max: TAG_NAME_BYTES_MAX });
    }
    if (Buffer.byteLength(value) > TAG_BYTES_MAX)
      throw new ServiceError('MATCHMAKER_TAG_TOO_LONG', { max: TAG_BYTES_MAX });
  }
  const untaggable = modes.find(({ is_taggable }) => !is_taggable);
  if (pairs.length > 0 && untaggable) {
    throw new ServiceError('MATCHMAKER_TAGS_DISABLED', { game_mode: untaggable.name });
  }
}

/** Players who come together must fit into one lobby of some mode; into the lobby of their own maximum, where they name one. */
function checkParty(body: PartyBody, modes: GameModeSettings[]): void {
  if (modes.some((mode) => holdsParty(mode, body))) return;
  const largest = Math.max(...modes.map((mode) => maximaOf(mode, body).max_players_party));
  throw new ServiceError('MATCHMAKER_PARTY_TOO_LARGE', { max: largest });
}

type PartyBody = Pick<FindBody, 'players' | 'max_players'>;

/** Whether all who come together have a place in an empty lobby of a mode. */
function holdsParty(mode: GameModeSettings, { players = 1, max_players }: PartyBody): boolean {
  return players === 1 || players <= maximaOf(mode, { max_players }).max_players_party;
}

function checkMaxPlayers(max_players: number, modes: GameModeSettings[]): void {
  for (const { name, allows_dynamic_max_players, max_players_normal, max_players_direct } of modes) {
    if (!allows_dynamic_max_players)
      throw new ServiceError('MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED', { game_mode: name });
    const max = Math.max(max_players_normal, max_players_direct);
    if (max_players < 1 || max_players > max) {
      throw new ServiceError('MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID', { game_mode: name, max });
    }
  }
}

/**
 * Slugs of regions, the one to recommend to a client first: by the latency that he measured; those that he did not measure
 * by their distance from him; those of which neither is known last, in the order that they come in.
 */
export function orderRegions(
  regions: { slug: string; coordinates: Coordinates | undefined }[],
  { coordinates: client, latencies = {} }: Whereabouts,
): string[] {
  // Not asked by name: a region may be called as something that every object has.
  const measured = new Map(Object.entries(latencies));
  const ranked = regions.map(({ slug, coordinates }) => ({
    slug,
    latency: measured.get(slug) ?? Number.POSITIVE_INFINITY,
    kilometers: client && coordinates ? kilometersBetween(client, coordinates) : Number.POSITIVE_INFINITY,
  }));
  // Two infinities differ by NaN, which is no difference.
  ranked.sort((one, other) => one.latency - other.latency || one.kilometers - other.kilometers || 0);
  return ranked.map(({ slug }) => slug);
}

/** One region when the player named none: the first that offers one of the modes. */
function recommend(regions: string[], modes: GameModeSettings[]): string[] {
  const first = regions.find((region) => modes.some((mode) => mode.regions.has(region)));
  return first === undefined ? [] : [first];
}

/** The first of the modes that is offered in one of the regions. */
function findTarget(modes: GameModeSettings[], regions: string[]): { mode: GameModeSettings; region: string } {
  for (const mode of modes) {
    const region = regions.find((slug) => mode.regions.has(slug));
    if (region !== undefined) return { mode, region };
  }
  throw new ServiceError('MATCHMAKER_AUTO_CREATE_FAILED', {});
}
