import { ServiceError } from '../../../platform/errors.ts';
import { cutText } from '../../outbound-exchange.ts';
import type { ActionConfig, GameModeSettings } from '../../versions/versions.ts';
import type { CreateBody, FindBody } from '../wire.ts';

const TAGS_MAX = 8;
const TAG_NAME_BYTES_MAX = 128;
const TAG_BYTES_MAX = 512;
const LOBBY_CONFIG_BYTES_MAX = 16 * 1_024;

/** A find, checked against the version. */
export interface Search {
  /** In the order of the request. */
  game_modes: string[];
  /** Slugs, in the order of the request. */
  regions: string[];
  tags: Record<string, string>;
  /** The lobby to create if none has a free seat; undefined if the find must not create one. */
  new_lobby: NewLobby | undefined;
}

/** A lobby to create. */
export interface NewLobby {
  game_mode: string;
  region: string;
  tags: Record<string, string>;
  max_players_normal: number;
  max_players_direct: number;
  max_players_party: number;
  /** Null unless a player creates the lobby. */
  publicity: 'public' | 'private' | null;
  /** The configuration by the player who creates the lobby: any JSON as text. */
  lobby_config: string | undefined;
}

/**
 * Plans the search of a find: checks its body, and fills in defaults. If several checks fail, throws the error of the
 * one that the reference API makes first. `regions`: the slugs of all regions, the best one for the client first.
 */
export function planSearch(body: FindBody, modes: ReadonlyMap<string, GameModeSettings>, regions: string[]): Search {
  const requested_modes = [...new Set(body.game_modes)].map((game_mode) => {
    const mode = modes.get(game_mode);
    if (!mode) throw new ServiceError('MATCHMAKER_GAME_MODE_NOT_FOUND', { game_mode });
    return mode;
  });
  if (requested_modes.length === 0) throw new ServiceError('MATCHMAKER_NO_GAME_MODE_PROVIDED', {});
  const { tags = {} } = body;
  checkTags(tags, requested_modes);
  if (body.max_players !== undefined) checkMaxPlayers(body.max_players, requested_modes);
  checkParty(body, requested_modes);
  const unknown_region = body.regions?.find((region) => !regions.includes(region));
  if (unknown_region !== undefined) throw new ServiceError('MATCHMAKER_REGION_NOT_FOUND', { region: unknown_region });
  const searched_regions = body.regions ? [...new Set(body.regions)] : recommend(regions, requested_modes);
  const modes_for_party = requested_modes.filter((requested_mode) => holdsParty(requested_mode, body));
  const { mode, region } = findTarget(modes_for_party, searched_regions);
  const is_creating = body.prevent_auto_create_lobby !== true;
  // A new lobby has the mode of the target. A find that creates none may get a seat in any of its modes.
  for (const { find } of is_creating ? [mode] : requested_modes) checkAction(find, 'MATCHMAKER_FIND_DISABLED');
  const new_lobby = {
    game_mode: mode.name,
    region,
    tags,
    ...maximaOf(mode, body),
    publicity: null,
    lobby_config: undefined,
  };
  // Modes that do not allow find are not searched, even if another one of the request does.
  const game_modes = requested_modes.filter(({ find }) => find.enabled && !needsIdentity(find)).map(({ name }) => name);
  return { game_modes, regions: searched_regions, tags, new_lobby: is_creating ? new_lobby : undefined };
}

/** Checks the lobby that a player creates, in the order of the reference API, and fills in defaults. */
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
      reason: `the game mode does not allow ${publicity} lobbies; send another publicity, or let the developer set actions.create.enable_${publicity}`,
    });
  }
  const lobby_config = body.lobby_config === undefined ? undefined : JSON.stringify(body.lobby_config);
  if (Buffer.byteLength(lobby_config ?? '') > LOBBY_CONFIG_BYTES_MAX) {
    throw new ServiceError('MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID', {
      reason: `lobby_config has more than ${LOBBY_CONFIG_BYTES_MAX} bytes; shorten it`,
    });
  }
  const region = chooseRegion(body.region, mode, regions);
  return { game_mode, region, tags, ...maximaOf(mode, body), publicity, lobby_config };
}

function chooseRegion(requested_region: string | undefined, mode: GameModeSettings, regions: string[]): string {
  if (requested_region !== undefined && !regions.includes(requested_region)) {
    throw new ServiceError('MATCHMAKER_REGION_NOT_FOUND', { region: requested_region });
  }
  const region = requested_region ?? regions.find((slug) => mode.regions.has(slug));
  if (region === undefined) throw new ServiceError('MATCHMAKER_AUTO_CREATE_FAILED', {});
  if (mode.regions.has(region)) return region;
  throw new ServiceError('MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE', { region, game_mode: mode.name });
}

/** Returns the three maxima of a lobby. The maximum of the request replaces all of them. */
function maximaOf(mode: GameModeSettings, { max_players }: { max_players?: number | undefined }) {
  return {
    max_players_normal: max_players ?? mode.max_players_normal,
    max_players_direct: max_players ?? mode.max_players_direct,
    max_players_party: max_players ?? mode.max_players_party,
  };
}

/** Throws if a game mode does not allow an action, or requires an identity, which requests cannot carry. */
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

/** Returns tags for a receipt, cut to the number and lengths that a request may have. */
export function cutTags(tags: Record<string, string>): Record<string, string> {
  const pairs = Object.entries(tags).slice(0, TAGS_MAX);
  return Object.fromEntries(
    pairs.map(([name, value]) => [cutText(name, TAG_NAME_BYTES_MAX), cutText(value, TAG_BYTES_MAX)]),
  );
}

/** Throws if a party does not fit into a lobby of any of the modes. */
function checkParty(body: PartyBody, modes: GameModeSettings[]): void {
  if (modes.some((mode) => holdsParty(mode, body))) return;
  const largest = Math.max(...modes.map((mode) => maximaOf(mode, body).max_players_party));
  throw new ServiceError('MATCHMAKER_PARTY_TOO_LARGE', { max: largest });
}

type PartyBody = Pick<FindBody, 'players' | 'max_players'>;

/** Returns whether a party fits into an empty lobby of a mode. */
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

/** Returns the region for a request that names none: the first one that has one of the modes. */
function recommend(regions: string[], modes: GameModeSettings[]): string[] {
  const first = regions.find((region) => modes.some((mode) => mode.regions.has(region)));
  return first === undefined ? [] : [first];
}

/** Returns the first of the modes that one of the regions has, and that region. */
function findTarget(modes: GameModeSettings[], regions: string[]): { mode: GameModeSettings; region: string } {
  for (const mode of modes) {
    const region = regions.find((slug) => mode.regions.has(slug));
    if (region !== undefined) return { mode, region };
  }
  throw new ServiceError('MATCHMAKER_AUTO_CREATE_FAILED', {});
}
