import { type Static, Type } from '@sinclair/typebox';
import { parseJsonToSendOn } from '../../platform/http/json.ts';
import { Coordinates, CoordinatesQuery, coordinatesOf, kilometersBetween, roundToTenth } from '../coordinates.ts';
import type { Datacenter } from '../datacenters/datacenters.ts';
import type { VisibleLobby } from './listing-store.ts';

const Region = Type.Object(
  {
    region_id: Type.String({ description: 'Slug of the datacenter.' }),
    provider_display_name: Type.String(),
    region_display_name: Type.String(),
    datacenter_coord: Coordinates,
    datacenter_distance_from_client: Type.Object(
      { kilometers: Type.Number(), miles: Type.Number() },
      { title: 'Distance' },
    ),
  },
  { title: 'Region' },
);

const ListedLobby = Type.Object(
  {
    region_id: Type.String(),
    game_mode_id: Type.String(),
    lobby_id: Type.String({ format: 'uuid' }),
    max_players_normal: Type.Integer(),
    max_players_direct: Type.Integer(),
    max_players_party: Type.Integer(),
    total_player_count: Type.Integer({ description: 'Players who have connected.' }),
    state: Type.Optional(Type.Unknown()),
  },
  { title: 'ListedLobby' },
);

/** A lobby as a player who knows its id sees it. */
const LobbyById = Type.Object(
  { ...ListedLobby.properties, is_closed: Type.Boolean(), is_ready: Type.Boolean() },
  { title: 'Lobby' },
);
export type LobbyById = Static<typeof LobbyById>;
export const LobbyAnswer = Type.Object({ lobby: LobbyById });

export const ListQuery = Type.Object({
  include_state: Type.Optional(Type.Boolean()),
  ...CoordinatesQuery.properties,
});
export const Listing = Type.Object({
  game_modes: Type.Array(Type.Object({ game_mode_id: Type.String() }, { title: 'ListedGameMode' })),
  regions: Type.Array(Region),
  lobbies: Type.Array(ListedLobby),
});
export type Listing = Static<typeof Listing>;

export const RegionsAnswer = Type.Object({ regions: Type.Array(Region) });
export type Regions = Static<typeof RegionsAnswer>;

const RegionStatistics = Type.Object({ player_count: Type.Integer() }, { title: 'RegionStatistics' });
const GameModeStatistics = Type.Object(
  { player_count: Type.Integer(), regions: Type.Record(Type.String(), RegionStatistics) },
  { title: 'GameModeStatistics' },
);
export const StatisticsQuery = Type.Object({ exclude_outdated: Type.Optional(Type.Boolean()) });
export const Statistics = Type.Object({
  player_count: Type.Integer({ description: 'Players who have a seat.' }),
  game_modes: Type.Record(Type.String(), GameModeStatistics),
});
export type Statistics = Static<typeof Statistics>;

/** The international mile of 1959. */
const KILOMETERS_PER_MILE = 1.609344;

/** Returns a region with its distance from a client. Unknown coordinates and distances are 0, as in the reference API. */
export function toRegion(
  { slug, name, ...columns }: Pick<Datacenter, 'slug' | 'name' | 'latitude' | 'longitude'>,
  client: Coordinates | undefined,
): Static<typeof Region> {
  const coordinates = coordinatesOf(columns);
  const kilometers = client && coordinates ? kilometersBetween(client, coordinates) : 0;
  return {
    region_id: slug,
    provider_display_name: 'Muster',
    region_display_name: name,
    datacenter_coord: coordinates ?? { latitude: 0, longitude: 0 },
    datacenter_distance_from_client: {
      kilometers: roundToTenth(kilometers),
      miles: roundToTenth(kilometers / KILOMETERS_PER_MILE),
    },
  };
}

export function toListedLobby(
  lobby: Omit<VisibleLobby, 'state' | 'is_ready' | 'is_stopped'>,
  state: string | null | undefined,
): Static<typeof ListedLobby> {
  const { lobby_id, region, game_mode, connected_count } = lobby;
  const { max_players_normal, max_players_direct, max_players_party } = lobby;
  return {
    region_id: region,
    game_mode_id: game_mode,
    lobby_id,
    max_players_normal,
    max_players_direct,
    max_players_party,
    total_player_count: connected_count,
    ...(state == null ? {} : { state: parseJsonToSendOn(state) }),
  };
}

export function toLobbyById(lobby: VisibleLobby): LobbyById {
  return { ...toListedLobby(lobby, lobby.state), is_closed: lobby.is_closed, is_ready: lobby.is_ready };
}
