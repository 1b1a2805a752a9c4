/** A shape of the field's contract: the name of one, or of a plain type; members with ? may be left out. */
type Shape = string | { object: Record<string, Shape> } | { array: Shape } | { enum: string[] };

/** As much of the field's contract as is tested by it, in its own names. */
const SHAPES: Record<string, Shape> = {
  Timestamp: 'string:timestamp',
  WatchResponse: { object: { index: 'string' } },
  ValidationErrors: { object: { errors: { array: { object: { path: { array: 'string' } } } } } },
  ErrorBody: {
    object: { code: 'string', message: 'string', ray_id: 'string', 'documentation?': 'string', 'metadata?': 'any' },
  },
  CloudGamesGetGamesResponse: {
    object: { games: { array: 'GameGameSummary' }, groups: { array: 'GroupGroupSummary' }, watch: 'WatchResponse' },
  },
  GameGameSummary: {
    object: {
      game_id: 'string:uuid',
      name_id: 'string',
      display_name: 'string',
      'logo_url?': 'string',
      'banner_url?': 'string',
      url: 'string',
      developer: 'GroupHandle',
      total_player_count: 'integer',
    },
  },
  CloudGamesGetGameByIdResponse: { object: { game: 'CloudGameFull', watch: 'WatchResponse' } },
  CloudGameFull: {
    object: {
      game_id: 'string:uuid',
      create_ts: 'Timestamp',
      name_id: 'string',
      display_name: 'string',
      developer_group_id: 'string:uuid',
      total_player_count: 'integer',
      'logo_url?': 'string',
      'banner_url?': 'string',
      namespaces: { array: 'CloudNamespaceSummary' },
      versions: { array: 'CloudVersionSummary' },
      available_regions: { array: 'CloudRegionSummary' },
    },
  },
  CloudNamespaceSummary: {
    object: {
      namespace_id: 'string:uuid',
      create_ts: 'Timestamp',
      display_name: 'string',
      version_id: 'string:uuid',
      name_id: 'string',
    },
  },
  CloudVersionSummary: { object: { version_id: 'string:uuid', create_ts: 'Timestamp', display_name: 'string' } },
  CloudRegionSummary: {
    object: {
      region_id: 'string:uuid',
      region_name_id: 'string',
      provider: 'string',
      universal_region: 'string',
      provider_display_name: 'string',
      region_display_name: 'string',
    },
  },
  GroupPublicity: { enum: ['open', 'closed'] },
  GroupExternalLinks: { object: { profile: 'string' } },
  GroupHandle: {
    object: {
      group_id: 'string:uuid',
      display_name: 'string',
      'avatar_url?': 'string',
      external: 'GroupExternalLinks',
      'is_developer?': 'boolean',
    },
  },
  GroupGroupSummary: {
    object: {
      group_id: 'string:uuid',
      display_name: 'string',
      'avatar_url?': 'string',
      external: 'GroupExternalLinks',
      is_developer: 'boolean',
      bio: 'string',
      is_current_identity_member: 'boolean',
      publicity: 'GroupPublicity',
      member_count: 'integer',
      owner_identity_id: 'string:uuid',
    },
  },
  GroupListSuggestedResponse: { object: { groups: { array: 'GroupGroupSummary' }, watch: 'WatchResponse' } },
  GroupGetSummaryResponse: { object: { group: 'GroupGroupSummary' } },
  GroupGetProfileResponse: { object: { group: 'GroupProfile', watch: 'WatchResponse' } },
  GroupProfile: {
    object: {
      group_id: 'string:uuid',
      display_name: 'string',
      'avatar_url?': 'string',
      external: 'GroupExternalLinks',
      'is_developer?': 'boolean',
      bio: 'string',
      'is_current_identity_member?': 'boolean',
      publicity: 'GroupPublicity',
      'member_count?': 'integer',
      members: { array: { object: { identity: 'IdentityHandle' } } },
      join_requests: { array: 'GroupJoinRequest' },
      'is_current_identity_requesting_join?': 'boolean',
      owner_identity_id: 'string:uuid',
    },
  },
  GroupJoinRequest: { object: { identity: 'IdentityHandle', ts: 'Timestamp' } },
  GroupGetMembersResponse: {
    object: {
      members: { array: { object: { identity: 'IdentityHandle' } } },
      'anchor?': 'string',
      watch: 'WatchResponse',
    },
  },
  GroupGetJoinRequestsResponse: {
    object: { join_requests: { array: 'GroupJoinRequest' }, 'anchor?': 'string', watch: 'WatchResponse' },
  },
  GroupGetBansResponse: {
    object: {
      banned_identities: { array: { object: { identity: 'IdentityHandle', ban_ts: 'Timestamp' } } },
      'anchor?': 'string',
      watch: 'WatchResponse',
    },
  },
  GroupGetInviteResponse: { object: { group: 'GroupHandle' } },
  IdentityExternalLinks: { object: { profile: 'string', 'settings?': 'string' } },
  IdentityHandle: {
    object: {
      identity_id: 'string:uuid',
      display_name: 'string',
      account_number: 'integer',
      avatar_url: 'string',
      is_registered: 'boolean',
      external: 'IdentityExternalLinks',
    },
  },
  IdentitySummary: {
    object: {
      identity_id: 'string:uuid',
      display_name: 'string',
      account_number: 'integer',
      avatar_url: 'string',
      is_registered: 'boolean',
      external: 'IdentityExternalLinks',
      following: 'boolean',
      is_following_me: 'boolean',
      is_mutual_following: 'boolean',
    },
  },
  IdentityProfile: {
    object: {
      identity_id: 'string:uuid',
      display_name: 'string',
      account_number: 'integer',
      avatar_url: 'string',
      is_registered: 'boolean',
      external: 'IdentityExternalLinks',
      is_admin: 'boolean',
      'is_game_linked?': 'boolean',
      'dev_state?': 'string',
      follower_count: 'integer',
      following_count: 'integer',
      following: 'boolean',
      is_following_me: 'boolean',
      is_mutual_following: 'boolean',
      join_ts: 'Timestamp',
      bio: 'string',
      linked_accounts: { array: 'any' },
      groups: { array: { object: { group: 'GroupHandle' } } },
      games: { array: 'any' },
      'awaiting_deletion?': 'boolean',
    },
  },
  IdentitySetupResponse: {
    object: {
      identity_token: 'string',
      identity_token_expire_ts: 'Timestamp',
      identity: 'IdentityProfile',
      game_id: 'string:uuid',
    },
  },
  IdentityGetProfileResponse: { object: { identity: 'IdentityProfile', watch: 'WatchResponse' } },
  IdentityGetHandlesResponse: { object: { identities: { array: 'IdentityHandle' }, watch: 'WatchResponse' } },
  IdentityGetSummariesResponse: { object: { identities: { array: 'IdentitySummary' }, watch: 'WatchResponse' } },
  IdentityWatchEventsResponse: {
    object: {
      events: {
        array: {
          object: {
            ts: 'Timestamp',
            kind: { object: { 'identity_update?': { object: { identity: 'IdentityProfile' } } } },
            'notification?': 'any',
          },
        },
      },
      watch: 'WatchResponse',
    },
  },
  CloudNamespaceFull: {
    object: {
      namespace_id: 'string:uuid',
      create_ts: 'Timestamp',
      display_name: 'string',
      version_id: 'string:uuid',
      name_id: 'string',
      config: {
        object: {
          cdn: {
            object: {
              enable_domain_public_auth: 'boolean',
              domains: { array: 'any' },
              auth_type: { enum: ['none', 'basic'] },
              auth_user_list: { array: { object: { user: 'string' } } },
            },
          },
          matchmaker: {
            object: {
              lobby_count_max: 'integer',
              max_players_per_client: 'integer',
              max_players_per_client_vpn: 'integer',
              max_players_per_client_proxy: 'integer',
              max_players_per_client_tor: 'integer',
              max_players_per_client_hosting: 'integer',
            },
          },
          kv: { object: {} },
          identity: { object: {} },
        },
      },
    },
  },
  NamespaceVersions: {
    object: {
      versions: { array: { object: { namespace_id: 'string', version_id: 'string', deploy_ts: 'Timestamp' } } },
    },
  },
  ServersListDatacentersResponse: {
    object: { datacenters: { array: { object: { id: 'string:uuid', slug: 'string', name: 'string' } } } },
  },
};

const PLAIN: Record<string, (value: unknown) => boolean> = {
  any: () => true,
  string: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  integer: (value) => Number.isSafeInteger(value),
  'string:uuid': (value) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(String(value)),
  'string:timestamp': (value) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(String(value)),
};

/** Where a value is not what the field's clients need: required members are there, none is null, all are of their types. */
export function contractProblems(shape: Shape, value: unknown, place = 'it'): string[] {
  if (typeof shape === 'string') {
    const named = SHAPES[shape];
    if (named !== undefined) return contractProblems(named, value, place);
    const isRight = PLAIN[shape];
    if (!isRight) throw new Error(`the contract has no ${shape}`);
    return isRight(value) ? [] : [`${place} is no ${shape}`];
  }
  if ('enum' in shape) return shape.enum.some((one) => one === value) ? [] : [`${place} is none of ${shape.enum}`];
  if ('array' in shape) {
    if (!Array.isArray(value)) return [`${place} is no list`];
    return value.flatMap((one, index) => contractProblems(shape.array, one, `${place}[${index}]`));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${place} is no object`];
  const members = new Map(Object.entries(value));
  return Object.entries(shape.object).flatMap(([name, member]) => {
    const key = name.replace('?', '');
    if (members.has(key)) return contractProblems(member, members.get(key), `${place}.${key}`);
    return name === key ? [`${place}.${key} is missing`] : [];
  });
}
