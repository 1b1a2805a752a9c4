import { route, watched } from '../../platform/http/route.ts';
import { Empty } from '../../platform/http/shapes.ts';
import { averagePerMinute } from '../../platform/limits/limit.ts';
import { watchState } from '../../platform/watch/views.ts';
import type { Groups } from './groups.ts';
import * as wire from './wire.ts';

const GROUP = '/group/groups/:group_id';
const OWNER_ERRORS = ['GROUP_NOT_FOUND', 'GROUP_INSUFFICIENT_PERMISSIONS'] as const;
const ADMISSION_ERRORS = ['GROUP_ALREADY_MEMBER', 'GROUP_FULL', 'GROUP_MEMBER_BANNED', 'IDENTITY_NOT_FOUND'] as const;
const INVITE_ERRORS = [
  'GROUP_INVITE_CODE_INVALID',
  'GROUP_INVITE_CODE_EXPIRED',
  'GROUP_INVITE_CODE_ALREADY_USED',
] as const;

/**
 * Limits guesses of codes. Counts by address, because a client can create new identities at no cost. Refuses all while
 * the store of the limiter is unavailable.
 */
const CONSUMING = averagePerMinute('invites-consume', 2, { by: 'address', when_store_is_lost: 'refuse' });

/** Limits previews of invites, which also reveal whether a code is right. A player previews an invite before using it. */
const PREVIEWING = averagePerMinute('invites-look', 8, { by: 'address', when_store_is_lost: 'refuse' });

/** Routes for members, join requests, bans and invites. */
export function groupMemberRoutes(groups: Groups, { public_url }: { public_url: string }) {
  const acting = { allow: ['identity'], response: Empty } as const;
  const reading = { allow: ['identity'], query: wire.PeopleQuery } as const;
  return [
    watched(
      `${GROUP}/members`,
      {
        operation: 'listGroupMembers',
        ...reading,
        summary: 'Lists the members of a group, the longest member first.',
        response: wire.MembersAnswer,
        errors: ['GROUP_NOT_FOUND', 'GROUP_NOT_MEMBER'],
      },
      ({ caller, params, query }) =>
        watchState(
          groups.people,
          { ...query, ...params, identity_id: caller.identity_id, list: 'members' },
          ({ people, anchor }) => ({
            members: people.map(({ identity }) => ({ identity })),
            ...toAnchor(anchor),
          }),
        ),
    ),
    watched(
      `${GROUP}/join-requests`,
      {
        operation: 'listJoinRequests',
        ...reading,
        summary: 'Lists the join requests of a group. For the owner.',
        response: wire.JoinRequestsAnswer,
        errors: [...OWNER_ERRORS],
      },
      ({ caller, params, query }) =>
        watchState(
          groups.people,
          { ...query, ...params, identity_id: caller.identity_id, list: 'join_requests' },
          ({ people, anchor }) => ({ join_requests: people, ...toAnchor(anchor) }),
        ),
    ),
    watched(
      `${GROUP}/bans`,
      {
        operation: 'listGroupBans',
        ...reading,
        summary: 'Lists the people banned from a group. For the owner.',
        response: wire.BansAnswer,
        errors: [...OWNER_ERRORS],
      },
      ({ caller, params, query }) =>
        watchState(
          groups.people,
          { ...query, ...params, identity_id: caller.identity_id, list: 'bans' },
          ({ people, anchor }) => ({
            banned_identities: people.map(({ identity, ts }) => ({ identity, ban_ts: ts })),
            ...toAnchor(anchor),
          }),
        ),
    ),
    route(
      'POST',
      `${GROUP}/bans/:identity_id`,
      {
        operation: 'banIdentity',
        ...acting,
        summary: 'Bans a person from a group. For the owner.',
        body: Empty,
        errors: [...OWNER_ERRORS, 'IDENTITY_NOT_FOUND', 'API_FORBIDDEN'],
      },
      async ({ caller, params }) => {
        await groups.ban({ ...params, actor_id: caller.identity_id });
        return {};
      },
    ),
    route(
      'DELETE',
      `${GROUP}/bans/:identity_id`,
      { operation: 'unbanIdentity', ...acting, summary: 'Lifts a ban. For the owner.', errors: OWNER_ERRORS },
      async ({ caller, params }) => {
        await groups.unban({ ...params, actor_id: caller.identity_id });
        return {};
      },
    ),
    route(
      'POST',
      `${GROUP}/kick/:identity_id`,
      {
        operation: 'kickMember',
        ...acting,
        summary: 'Removes a member. For the owner.',
        body: Empty,
        errors: [...OWNER_ERRORS, 'GROUP_NOT_MEMBER', 'API_FORBIDDEN'],
      },
      async ({ caller, params }) => {
        await groups.kick({ ...params, actor_id: caller.identity_id });
        return {};
      },
    ),
    route(
      'POST',
      `${GROUP}/leave`,
      {
        operation: 'leaveGroup',
        ...acting,
        summary: 'Leaves a group.',
        body: Empty,
        errors: ['GROUP_NOT_FOUND', 'GROUP_NOT_MEMBER', 'API_FORBIDDEN'],
      },
      async ({ caller, params }) => {
        await groups.leave({ ...params, actor_id: caller.identity_id });
        return {};
      },
    ),
    route(
      'POST',
      `${GROUP}/transfer-owner`,
      {
        operation: 'transferGroup',
        ...acting,
        summary: 'Transfers a group to another member. For the owner.',
        body: wire.TransferBody,
        errors: [...OWNER_ERRORS, 'GROUP_NOT_MEMBER'],
      },
      async ({ caller, params, body }) => {
        const identity_id = body.new_owner_identity_id.toLowerCase();
        await groups.transfer({ ...params, actor_id: caller.identity_id, identity_id });
        return {};
      },
    ),
    route(
      'POST',
      `${GROUP}/join-request`,
      {
        operation: 'createJoinRequest',
        ...acting,
        summary: 'Asks to join an open group.',
        body: Empty,
        errors: [
          'GROUP_NOT_FOUND',
          'GROUP_CANNOT_REQUEST_JOIN',
          'GROUP_JOIN_REQUEST_ALREADY_EXISTS',
          ...ADMISSION_ERRORS,
        ],
      },
      async ({ caller, params }) => {
        await groups.requestJoin({ ...params, actor_id: caller.identity_id });
        return {};
      },
    ),
    route(
      'POST',
      `${GROUP}/join-request/:identity_id`,
      {
        operation: 'resolveJoinRequest',
        recorded: ['resolution'],
        ...acting,
        summary: 'Accepts a join request if resolution is true, and deletes it. For the owner.',
        body: wire.ResolveBody,
        errors: [...OWNER_ERRORS, ...ADMISSION_ERRORS],
      },
      async ({ caller, params, body }) => {
        await groups.resolveJoin({ ...params, actor_id: caller.identity_id }, body.resolution ?? false);
        return {};
      },
    ),
    route(
      'POST',
      `${GROUP}/invites`,
      {
        operation: 'createInvite',
        recorded: ['ttl', 'use_count'],
        summary: 'Creates an invite code. For members.',
        allow: ['identity'],
        body: wire.CreateInviteBody,
        response: wire.CreateInviteAnswer,
        errors: ['GROUP_NOT_MEMBER', 'GROUP_TOO_MANY_INVITES', 'VALIDATION_ERROR'],
      },
      async ({ caller, params, body }) => ({
        code: await groups.createInvite({ ...params, actor_id: caller.identity_id }, body),
      }),
    ),
    route(
      'GET',
      '/group/invites/:group_invite_code',
      {
        operation: 'getInvite',
        summary: 'Returns the group of an invite.',
        allow: ['identity'],
        limit: PREVIEWING,
        free_params: ['group_invite_code'],
        response: wire.InviteAnswer,
        errors: [...INVITE_ERRORS],
      },
      async ({ params }) => {
        const group = await groups.get(await groups.groupOfInvite(params.group_invite_code));
        return { group: wire.toGroupHandle(group, public_url) };
      },
    ),
    route(
      'POST',
      '/group/invites/:group_invite_code/consume',
      {
        operation: 'consumeInvite',
        summary: 'Joins a group by an invite.',
        allow: ['identity'],
        limit: CONSUMING,
        free_params: ['group_invite_code'],
        body: Empty,
        response: wire.ConsumeInviteAnswer,
        errors: [...INVITE_ERRORS, ...ADMISSION_ERRORS],
      },
      async ({ caller, params }) => ({
        group_id: await groups.consumeInvite(params.group_invite_code, caller.identity_id),
      }),
    ),
  ];
}

function toAnchor(anchor: string | undefined): { anchor?: string } {
  return anchor === undefined ? {} : { anchor };
}
