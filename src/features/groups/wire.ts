import { type Static, Type } from '@sinclair/typebox';
import { Uuid } from '../../platform/http/shapes.ts';
import type { CountedGroup } from './tables.ts';

export const CreateGroupBody = Type.Object({ display_name: Type.String() });
export const CreateGroupAnswer = Type.Object({ group_id: Uuid });

const External = Type.Object({ profile: Type.String() });

/** How others show a group. */
export const GroupHandle = Type.Object({
  group_id: Uuid,
  display_name: Type.String(),
  avatar_url: Type.Optional(Type.String()),
  external: External,
  is_developer: Type.Optional(Type.Boolean()),
});

export const GroupSummary = Type.Object({
  group_id: Uuid,
  display_name: Type.String(),
  bio: Type.String(),
  avatar_url: Type.Optional(Type.String()),
  external: External,
  is_developer: Type.Boolean(),
  is_current_identity_member: Type.Boolean(),
  member_count: Type.Integer(),
  owner_identity_id: Uuid,
  publicity: Type.Union([Type.Literal('open'), Type.Literal('closed')]),
});
export type GroupSummary = Static<typeof GroupSummary>;

export const GroupSummaryAnswer = Type.Object({ group: GroupSummary });

export function toGroupHandle(group: { group_id: string; display_name: string }, public_url: string) {
  const { group_id, display_name } = group;
  return { group_id, display_name, external: { profile: `${public_url}/groups/${group_id}` }, is_developer: true };
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
