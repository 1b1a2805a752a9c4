import { route } from '../../platform/http/route.ts';
import { ValidationErrors } from '../../platform/http/shapes.ts';
import type { Groups } from './groups.ts';
import { CreateGroupAnswer, CreateGroupBody, GroupSummaryAnswer, toGroupSummary } from './wire.ts';

export function groupRoutes(groups: Groups, { public_url }: { public_url: string }) {
  return [
    route(
      'POST',
      '/group/groups',
      {
        summary: 'Creates a group, which can own games. For administrators.',
        allow: ['identity'],
        body: CreateGroupBody,
        response: CreateGroupAnswer,
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
        summary: 'Says what is wrong with the name of a group, without creating it.',
        allow: ['identity', 'cloud'],
        body: CreateGroupBody,
        response: ValidationErrors,
      },
      async ({ body }) => ({ errors: groups.validate(body.display_name) }),
    ),
    route(
      'GET',
      '/group/groups/:group_id/summary',
      {
        summary: 'A group as others see it.',
        allow: ['identity'],
        response: GroupSummaryAnswer,
        errors: ['GROUP_NOT_FOUND'],
      },
      async ({ caller, params }) => {
        const group = await groups.get(params.group_id);
        const is_member = await groups.isMember(group.group_id, caller.identity_id);
        return { group: toGroupSummary(group, is_member, public_url) };
      },
    ),
  ];
}
