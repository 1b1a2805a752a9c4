import { type Static, Type } from '@sinclair/typebox';
import { Text, Timestamp, U32, Uuid } from '../../platform/http/shapes.ts';
import type { Datacenter } from '../datacenters/datacenters.ts';
import type { CountedGroup } from '../groups/groups.ts';
import { GroupHandle, GroupSummary, toGroupHandle, toGroupSummary } from '../groups/wire.ts';
import { NamespaceSummary } from '../namespaces/wire.ts';
import { VersionSummary } from '../versions/wire.ts';
import type { GameRow } from './tables.ts';

const PlayerCount = Type.Integer({
  ...U32,
  description: 'Players who have a seat, in all namespaces; updated every 5 s.',
});

const NameId = Type.Optional(
  Type.String({ ...Text, description: 'Ignored: the name id is derived from the display name.' }),
);

export const GameNames = Type.Object({ display_name: Text, name_id: NameId });

export const CreateGameBody = Type.Object({
  display_name: Text,
  developer_group_id: Uuid,
  name_id: NameId,
  if_missing: Type.Optional(
    Type.Boolean({
      description: "Returns the group's game with this display name if there is one, and creates none.",
    }),
  ),
});
export const CreateGameAnswer = Type.Object({ game_id: Uuid });

const RegionSummary = Type.Object(
  {
    region_id: Uuid,
    region_name_id: Type.String(),
    provider: Type.String(),
    universal_region: Type.String(),
    provider_display_name: Type.String(),
    region_display_name: Type.String(),
  },
  { title: 'GameRegion' },
);

export const Game = Type.Object(
  {
    game_id: Uuid,
    create_ts: Timestamp,
    name_id: Type.String(),
    display_name: Type.String(),
    developer_group_id: Uuid,
    total_player_count: PlayerCount,
    logo_url: Type.Optional(Type.String()),
    banner_url: Type.Optional(Type.String()),
    namespaces: Type.Array(NamespaceSummary),
    versions: Type.Array(VersionSummary),
    available_regions: Type.Array(RegionSummary),
  },
  { title: 'Game' },
);
export const GameAnswer = Type.Object({ game: Game });

const HandleMembers = {
  game_id: Uuid,
  name_id: Type.String(),
  display_name: Type.String(),
  logo_url: Type.Optional(Type.String()),
  banner_url: Type.Optional(Type.String()),
  url: Type.String({ examples: ['https://crab-arena.sites.example.com'] }),
};
const GameSummary = Type.Object(
  {
    ...HandleMembers,
    developer: GroupHandle,
    total_player_count: PlayerCount,
  },
  { title: 'GameSummary' },
);
export const GamesAnswer = Type.Object({
  games: Type.Array(GameSummary),
  groups: Type.Array(GroupSummary),
});

const GameProfile = Type.Object(
  {
    ...HandleMembers,
    developer: GroupSummary,
    tags: Type.Array(Type.String()),
    description: Type.String(),
    platforms: Type.Array(Type.Unknown()),
    recommended_groups: Type.Array(GroupSummary),
    identity_leaderboard_categories: Type.Array(Type.Unknown()),
    group_leaderboard_categories: Type.Array(Type.Unknown()),
  },
  { title: 'GameProfile' },
);
export const GameProfileAnswer = Type.Object({ game: GameProfile });

export const InspectAnswer = Type.Object({
  agent: Type.Union([
    Type.Object({ identity: Type.Object({ identity_id: Uuid }) }, { title: 'IdentityAgent' }),
    Type.Object({ game_cloud: Type.Object({ game_id: Uuid }) }, { title: 'GameAgent' }),
  ]),
});

/** The base addresses of the service and of games' sites. */
interface Addresses {
  public_url: string;
  sites_domain: string;
}

/** Returns the address of the site of a game's namespace prod. */
function toSiteUrl(name_id: string, { public_url, sites_domain }: Addresses): string {
  const url = new URL(public_url);
  url.hostname = `${name_id}.${sites_domain}`;
  return url.origin;
}

/** Returns a game as its developers see it. Members that Muster does not have are constants. */
export function toGame(
  row: GameRow,
  parts: Pick<Static<typeof Game>, 'namespaces' | 'versions'> & {
    datacenters: Datacenter[];
    public_url: string;
  },
): Static<typeof Game> {
  const { game_id, create_ts, name_id, display_name, developer_group_id } = row;
  return {
    game_id,
    create_ts: create_ts.toISOString(),
    name_id,
    display_name,
    developer_group_id,
    total_player_count: row.player_count,
    ...toPictures(row, parts.public_url),
    namespaces: parts.namespaces,
    versions: parts.versions,
    available_regions: parts.datacenters.map(({ datacenter_id, slug, name }) => ({
      region_id: datacenter_id,
      region_name_id: slug,
      provider: 'muster',
      universal_region: 'unknown',
      provider_display_name: 'Muster',
      region_display_name: name,
    })),
  };
}

export function toGameSummary(
  row: GameRow,
  group: { group_id: string; display_name: string; avatar_upload_id: string | null },
  { public_url, sites_domain }: Addresses,
): Static<typeof GameSummary> {
  return {
    ...toHandle(row, { public_url, sites_domain }),
    developer: toGroupHandle(group, public_url),
    total_player_count: row.player_count,
  };
}

function toHandle(row: GameRow, { public_url, sites_domain }: Addresses) {
  const { game_id, name_id, display_name } = row;
  const url = toSiteUrl(name_id, { public_url, sites_domain });
  return { game_id, name_id, display_name, ...toPictures(row, public_url), url };
}

/** Returns the addresses of a game's logo and banner, if it has them. */
export function toPictures({ logo_upload_id, banner_upload_id }: GameRow, public_url: string) {
  return {
    ...(logo_upload_id ? { logo_url: `${public_url}/media/game-logo/${logo_upload_id}` } : {}),
    ...(banner_upload_id ? { banner_url: `${public_url}/media/game-banner/${banner_upload_id}` } : {}),
  };
}

/** Returns a game as players see it. Muster has no tags, platforms or leaderboards of games, so those lists are empty. */
export function toGameProfile(
  row: GameRow,
  group: CountedGroup,
  { public_url, sites_domain }: Addresses,
): Static<typeof GameProfile> {
  return {
    ...toHandle(row, { public_url, sites_domain }),
    developer: toGroupSummary(group, false, public_url),
    tags: [],
    description: '',
    platforms: [],
    recommended_groups: [],
    identity_leaderboard_categories: [],
    group_leaderboard_categories: [],
  };
}
