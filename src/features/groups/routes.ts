import { route } from '../../platform/http/route.ts';
import { Empty, ValidationErrors, WatchQuery } from '../../platform/http/shapes.ts';
import { nameCaller } from '../../platform/tokens/caller.ts';
import type { Watch } from '../../platform/watch/watch.ts';
import type { Groups } from './groups.ts';
import * as wire from './wire.ts';

const GROUP = '/group/groups/:group_id';

/** A list of groups to join has no version of its own: its index is never waited for. */
const NOT_WATCHABLE = { index: '' };

export function groupRoutes(groups: Groups, watch: Watch, { public_url }: { public_url: string }) {
  return [
    route(
      'GET',
      '/group/groups',
      {
        summary: 'Groups that anybody may ask to join.',
        allow: ['identity'],
        query: WatchQuery,
        response: wire.SuggestedAnswer,
      },
      async ({ caller }) => {
        const [open, own] = await Promise.all([groups.listOpen(), groups.listOf(caller.identity_id)]);
        const own_ids = new Set(own.map(({ group_id }) => group_id));
        const summaries = open.map((group) => wire.toGroupSummary(group, own_ids.has(group.group_id), public_url));
        return { groups: summaries, watch: NOT_WATCHABLE };
      },
    ),
    route(
      'POST',
      '/group/groups',
      {
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
        summary: 'Says what is wrong with the name of a group, without creating it.',
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
        summary: "Says what is wrong with a group's profile, without changing it.",
        allow: ['identity'],
        body: wire.GroupProfileBody,
        response: ValidationErrors,
      },
      async ({ body }) => ({ errors: groups.validateProfile(body) }),
    ),
    route(
      'GET',
      `${GROUP}/profile`,
      {
        summary: 'A group as the caller sees it.',
        allow: ['identity'],
        query: WatchQuery,
        response: wire.GroupProfileAnswer,
        errors: ['GROUP_NOT_FOUND', 'TOO_MANY_WATCHERS'],
      },
      async ({ caller, params, query, signal }) => {
        const waiting = { watch_index: query.watch_index, signal, waiter: nameCaller(caller) };
        const sight = { ...params, identity_id: caller.identity_id };
        const { view, watch: seen } = await watch.answer(groups.profile, sight, waiting);
        return { group: view, watch: seen };
      },
    ),
    route(
      'POST',
      `${GROUP}/profile`,
      {
        summary: 'Changes what others see of a group. Opened, it takes in all who asked. For the owner.',
        allow: ['identity'],
        body: wire.GroupProfileBody,
        response: Empty,
        errors: ['GROUP_NOT_FOUND', 'GROUP_INSUFFICIENT_PERMISSIONS', 'VALIDATION_ERROR'],
      },
      async ({ caller, params, body: { display_name, bio, publicity } }) => {
        const sight = { ...params, identity_id: caller.identity_id };
        await groups.updateProfile(sight, { display_name, bio, publicity });
        return {};
      },
    ),
    route(
      'GET',
      `${GROUP}/summary`,
      {
        summary: 'A group as others see it.',
        allow: ['identity'],
        response: wire.GroupSummaryAnswer,
        errors: ['GROUP_NOT_FOUND'],
      },
      async ({ caller, params }) => {
        const group = await groups.get(params.group_id);
        const is_member = await groups.isMember(group.group_id, caller.identity_id);
        return { group: wire.toGroupSummary(group, is_member, public_url) };
      },
    ),
  ];
}
