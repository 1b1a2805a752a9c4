import type { Events } from '../../platform/events.ts';
import type { Feature } from '../../platform/feature.ts';
import { startDeletingOld } from '../../platform/loop.ts';
import { createGroups, type Groups, type GroupsDependencies } from './groups.ts';
import { groupMemberRoutes } from './members-routes.ts';
import { groupRoutes } from './routes.ts';

/** Opens groups: teams of people that own games. */
export function openGroups(dependencies: GroupsDependencies & { events: Events }): Feature<Groups> {
  const { events } = dependencies;
  const groups = createGroups(dependencies);
  return {
    api: groups,
    routes: [...groupRoutes(groups, dependencies), ...groupMemberRoutes(groups, dependencies)],
    startWork: (signal) => [
      startDeletingOld({ name: 'old-invites', deleteOld: groups.deleteOldInvites, signal, events }),
      startDeletingOld({ name: 'old-join-requests', deleteOld: groups.deleteOldJoinRequests, signal, events }),
    ],
  };
}
