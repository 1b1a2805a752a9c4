import { type Static, Type } from '@sinclair/typebox';
import { oneOf, Text, Timestamp, Uuid } from '../../platform/http/shapes.ts';
import type { IdentityRow } from '../identities/identities.ts';
import { IdentityHandle, toHandle } from '../identities/wire.ts';
import type { CountedGroup } from './tables.ts';

export const CreateGroupBody = Type.Object({ display_name: Text });
export const CreateGroupAnswer = Type.Object({ group_id: Uuid });

const External = Type.Object({ profile: Type.String() }, { title: 'GroupLinks' });

const Publicity = oneOf('GroupPublicity', ['open', 'closed']);

/** A group as other objects show it. */
export const GroupHandle = Type.Object(
  {
    group_id: Uuid,
    display_name: Type.String(),
    avatar_url: Type.Optional(Type.String()),
    external: External,
    is_developer: Type.Optional(Type.Boolean()),
  },
  { title: 'GroupHandle' },
);

export const GroupSummary = Type.Object(
  {
    group_id: Uuid,
    display_name: Type.String(),
    bio: Type.String(),
    avatar_url: Type.Optional(Type.String()),
    external: External,
    is_developer: Type.Boolean(),
    is_current_identity_member: Type.Boolean(),
    member_count: Type.Integer(),
    owner_identity_id: Uuid,
    publicity: Publicity,
  },
  { title: 'GroupSummary' },
);
export type GroupSummary = Static<typeof GroupSummary>;

export const GroupSummaryAnswer = Type.Object({ group: GroupSummary });
export const OpenGroupsAnswer = Type.Object({ groups: Type.Array(GroupSummary) });

const Member = Type.Object({ identity: IdentityHandle }, { title: 'GroupMember' });
const JoinRequest = Type.Object({ identity: IdentityHandle, ts: Timestamp }, { title: 'JoinRequest' });
const Banned = Type.Object({ identity: IdentityHandle, ban_ts: Timestamp }, { title: 'BannedIdentity' });

const GroupProfile = Type.Object(
  {
    group_id: Uuid,
    display_name: Type.String(),
    avatar_url: Type.Optional(Type.String()),
    external: External,
    is_developer: Type.Optional(Type.Boolean()),
    bio: Type.String(),
    is_current_identity_member: Type.Optional(Type.Boolean()),
    publicity: Publicity,
    member_count: Type.Optional(Type.Integer()),
    members: Type.Array(Member),
    join_requests: Type.Array(JoinRequest),
    is_current_identity_requesting_join: Type.Optional(Type.Boolean()),
    owner_identity_id: Uuid,
  },
  { title: 'GroupProfile' },
);
export type GroupProfile = Static<typeof GroupProfile>;
export const GroupProfileAnswer = Type.Object({ group: GroupProfile });

export const GroupProfileBody = Type.Object({
  display_name: Type.Optional(Text),
  bio: Type.Optional(Text),
  publicity: Type.Optional(Publicity),
});

/** Milliseconds and an id, or an id alone, as in an earlier release. */
const ANCHOR = '^(\\d{1,14}\\.)?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';

export const PeopleQuery = Type.Object({
  anchor: Type.Optional(
    Type.String({
      minLength: 36,
      maxLength: 51,
      pattern: ANCHOR,
      description: 'The anchor of the previous page.',
      examples: ['1893456000000.6b8d9f1e-3c5a-4b7d-9e2f-1a4c6d8e0b3f'],
    }),
  ),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 64 })),
});
const PageMembers = { anchor: Type.Optional(Type.String()) };
export const MembersAnswer = Type.Object({ members: Type.Array(Member), ...PageMembers });
export const JoinRequestsAnswer = Type.Object({ join_requests: Type.Array(JoinRequest), ...PageMembers });
export const BansAnswer = Type.Object({ banned_identities: Type.Array(Banned), ...PageMembers });

export const TransferBody = Type.Object({ new_owner_identity_id: Uuid });
export const ResolveBody = Type.Object({ resolution: Type.Optional(Type.Boolean()) });
/** Wider than `createInvite` allows, so that its error can name the member that is out of range. */
const INVITE_LIMITS = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
export const CreateInviteBody = Type.Object({
  ttl: Type.Optional(Type.Number({ ...INVITE_LIMITS, description: 'Milliseconds.' })),
  use_count: Type.Optional(Type.Number(INVITE_LIMITS)),
});
export const CreateInviteAnswer = Type.Object({ code: Type.String() });
export const InviteAnswer = Type.Object({ group: GroupHandle });
export const ConsumeInviteAnswer = Type.Object({ group_id: Type.Optional(Uuid) });

/** A page of one of a group's lists. `anchor`: its last person, after whom the next page begins; undefined if it is not full. */
export interface PeoplePage {
  people: Static<typeof JoinRequest>[];
  anchor: string | undefined;
}

export function toPerson(identity: IdentityRow, ts: Date, public_url: string): Static<typeof JoinRequest> {
  return { identity: toHandle(identity, { public_url }), ts: ts.toISOString() };
}

export function toGroupProfile(
  group: CountedGroup,
  view: {
    is_member: boolean;
    is_requesting: boolean;
    members: PeoplePage['people'];
    join_requests: PeoplePage['people'];
  },
  public_url: string,
): GroupProfile {
  return {
    ...toGroupSummary(group, view.is_member, public_url),
    members: view.members.map(({ identity }) => ({ identity })),
    join_requests: view.join_requests,
    is_current_identity_requesting_join: view.is_requesting,
  };
}

export function toGroupHandle(
  group: { group_id: string; display_name: string; avatar_upload_id: string | null },
  public_url: string,
): Static<typeof GroupHandle> & { is_developer: boolean } {
  const { group_id, display_name, avatar_upload_id } = group;
  return {
    group_id,
    display_name,
    ...(avatar_upload_id ? { avatar_url: `${public_url}/media/team-avatar/${avatar_upload_id}` } : {}),
    external: { profile: `${public_url}/hub/~groups/${group_id}` },
    is_developer: true,
  };
}

export function toGroupSummary(group: CountedGroup, is_member: boolean, public_url: string): GroupSummary {
  const { bio, member_count, owner_identity_id, publicity } = group;
  return {
    ...toGroupHandle(group, public_url),
    bio,
    is_current_identity_member: is_member,
    member_count,
    owner_identity_id,
    publicity,
  };
}
