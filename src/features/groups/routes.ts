import { route, watched } from '../../platform/http/route.ts';
import { Empty, ValidationErrors } from '../../platform/http/shapes.ts';
import { watchState } from '../../platform/watch/views.ts';
import type { Groups } from './groups.ts';
import * as wire from './wire.ts';

const GROUP = '/group/groups/:group_id';

export function groupRoutes(groups: Groups, { public_url }: { public_url: string }) {
  return [
    watched(
      '/group/groups',
      {
        operation: 'listGroups',
        summary: 'Lists the groups that are open to join requests, newest first.',
        allow: ['identity'],
        response: wire.OpenGroupsAnswer,
      },
      ({ caller }) =>
        watchState(groups.open_groups, caller.identity_id, (open) => ({
          groups: open.map(({ group, is_member }) => wire.toGroupSummary(group, is_member, public_url)),
        })),
    ),
    route(
      'POST',
      '/group/groups',
      {
        operation: 'createGroup',
        recorded: ['display_name'],
        summary: 'Creates a group, which can own games. For administrators.',
        allow: ['identity'],
        body: wire.CreateGroupBody,
        response: wire.CreateGroupAnswer,
        errors: ['IDENTITY_NOT_ADMIN', 'VALIDATION_ERROR'],
      },
      async ({ caller, body }) => {
        const { group_id } = await groups.create(caller, body.display_name);
        return { group_id };
      },
    ),
    route(
      'POST',
      '/cloud/groups/validate',
      {
        operation: 'validateGroup',
        is_change: false,
        summary: 'Checks the name of a group without creating it.',
        allow: ['identity', 'cloud'],
        body: wire.CreateGroupBody,
        response: ValidationErrors,
      },
      async ({ body }) => ({ errors: groups.validate(body.display_name) }),
    ),
    route(
      'POST',
      '/group/groups/profile/validate',
      {
        operation: 'validateGroupProfile',
        is_change: false,
        summary: "Checks a group's profile without changing it.",
        allow: ['identity'],
        body: wire.GroupProfileBody,
        response: ValidationErrors,
      },
      async ({ body }) => ({ errors: groups.validateProfile(body) }),
    ),
    watched(
      `${GROUP}/profile`,
      {
        operation: 'getGroupProfile',
        summary: 'Returns a group as the caller sees it.',
        allow: ['identity'],
        response: wire.GroupProfileAnswer,
        errors: ['GROUP_NOT_FOUND'],
      },
      ({ caller, params }) =>
        watchState(groups.profile, { ...params, identity_id: caller.identity_id }, (group) => ({ group })),
    ),
    route(
      'POST',
      `${GROUP}/profile`,
      {
        operation: 'updateGroupProfile',
        recorded: ['display_name', 'publicity'],
        summary: 'Changes the profile of a group. Opening it admits its join requests. For the owner.',
        allow: ['identity'],
        body: wire.GroupProfileBody,
        response: Empty,
        errors: ['GROUP_NOT_FOUND', 'GROUP_INSUFFICIENT_PERMISSIONS', 'VALIDATION_ERROR'],
      },
      async ({ caller, params, body: { display_name, bio, publicity } }) => {
        const viewer = { ...params, identity_id: caller.identity_id };
        await groups.updateProfile(viewer, { display_name, bio, publicity });
        return {};
      },
    ),
    route(
      'GET',
      `${GROUP}/summary`,
      {
        operation: 'getGroupSummary',
        summary: 'Returns a group as others see it.',
        allow: ['identity'],
        response: wire.GroupSummaryAnswer,
        errors: ['GROUP_NOT_FOUND'],
      },
      async ({ caller, params }) => {
        const group = await groups.get(params.group_id);
        const is_member = await groups.isMember({ group_id: group.group_id, identity_id: caller.identity_id });
        return { group: wire.toGroupSummary(group, is_member, public_url) };
      },
    ),
  ];
}
