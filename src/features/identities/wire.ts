import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { I32, QueryList, Text, Timestamp, Uuid } from '../../platform/http/shapes.ts';
import type { IdentityRow } from './tables.ts';

const External = Type.Object(
  { profile: Type.String(), settings: Type.Optional(Type.String()) },
  { title: 'IdentityLinks' },
);

const HandleMembers = {
  identity_id: Uuid,
  display_name: Type.String(),
  account_number: Type.Integer(),
  avatar_url: Type.String(),
  is_registered: Type.Boolean(),
  external: External,
};

/** The public profile of an identity. */
export const IdentityHandle = Type.Object(HandleMembers, { title: 'IdentityHandle' });
export type IdentityHandle = Static<typeof IdentityHandle>;

/** Muster has no followers; clients of the reference API require these members. */
const FollowingMembers = {
  following: Type.Boolean(),
  is_following_me: Type.Boolean(),
  is_mutual_following: Type.Boolean(),
};
const NO_FOLLOWING = { following: false, is_following_me: false, is_mutual_following: false };

const IdentitySummary = Type.Object({ ...HandleMembers, ...FollowingMembers }, { title: 'IdentitySummary' });

/** A group of a profile. `groups/` defines its shape; this feature may not import it. */
const GroupOfProfile = Type.Object({ group: Type.Unknown() }, { title: 'IdentityGroup' });

export const IdentityProfile = Type.Object(
  {
    ...HandleMembers,
    ...FollowingMembers,
    is_admin: Type.Boolean(),
    follower_count: Type.Integer(),
    following_count: Type.Integer(),
    join_ts: Timestamp,
    bio: Type.String(),
    linked_accounts: Type.Array(Type.Unknown()),
    groups: Type.Array(GroupOfProfile),
    games: Type.Array(Type.Unknown()),
    awaiting_deletion: Type.Optional(Type.Boolean()),
  },
  { title: 'IdentityProfile' },
);
export type IdentityProfile = Static<typeof IdentityProfile>;

const optional = <Shape extends TSchema>(shape: Shape) => Type.Optional(shape);
export const ProfileBody = Type.Object({
  display_name: optional(Text),
  account_number: optional(I32),
  bio: optional(Text),
});
export const SetupBody = Type.Object({ existing_identity_token: optional(Type.String({ maxLength: 8_192 })) });
export const SetupAnswer = Type.Object({
  identity_token: Type.String(),
  identity_token_expire_ts: Timestamp,
  identity: IdentityProfile,
  game_id: Uuid,
});
export const RefreshBody = Type.Object({ logout: optional(Type.Boolean()) });
export const RefreshAnswer = Type.Object({ token: Type.String(), exp: Timestamp, identity_id: Uuid });
export const ProfileAnswer = Type.Object({ identity: IdentityProfile });
export const BatchQuery = Type.Object({
  identity_ids: QueryList({
    maxLength: 4_096,
    description: 'Up to 64 ids, separated by commas or as repeated parameters.',
  }),
});
export const HandlesAnswer = Type.Object({ identities: Type.Array(IdentityHandle) });
export const SummariesAnswer = Type.Object({ identities: Type.Array(IdentitySummary) });
const IdentityEvent = Type.Object({
  ts: Timestamp,
  kind: Type.Object({ identity_update: Type.Object({ identity: IdentityProfile }) }),
});
export type IdentityEvent = Static<typeof IdentityEvent>;
export const EventsAnswer = Type.Object({ events: Type.Array(IdentityEvent) });

/** The base address of pictures and profiles, without a slash at the end. */
export interface Addresses {
  public_url: string;
}

export function toHandle(row: IdentityRow, { public_url }: Addresses): IdentityHandle {
  const { identity_id, display_name, account_number, is_registered } = row;
  return {
    identity_id,
    display_name,
    account_number,
    avatar_url: row.avatar_upload_id
      ? `${public_url}/media/user-avatar/${row.avatar_upload_id}`
      : `${public_url}/media/default-avatar.svg`,
    is_registered,
    external: { profile: `${public_url}/hub/~people/${identity_id}` },
  };
}

export function toSummary(row: IdentityRow, addresses: Addresses): Static<typeof IdentitySummary> {
  return { ...toHandle(row, addresses), ...NO_FOLLOWING };
}

/** Returns a profile. Only the person itself sees that it is to be deleted. */
export function toProfile(
  row: IdentityRow,
  { groups, is_self }: { groups: unknown[]; is_self: boolean },
  addresses: Addresses,
): IdentityProfile {
  return {
    ...toSummary(row, addresses),
    is_admin: row.is_admin,
    follower_count: 0,
    following_count: 0,
    join_ts: row.create_ts.toISOString(),
    bio: row.bio,
    linked_accounts: [],
    groups: groups.map((group) => ({ group })),
    games: [],
    ...(is_self && row.delete_ts && { awaiting_deletion: true }),
  };
}
