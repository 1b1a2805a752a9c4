import { route } from '../../platform/http/route.ts';
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
