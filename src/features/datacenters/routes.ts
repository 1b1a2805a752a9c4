import { route } from '../../platform/http/route.ts';
import { averagePerMinute } from '../../platform/limits/limit.ts';
import type { Datacenters } from './datacenters.ts';
import { DatacentersAnswer, toDatacenter } from './wire.ts';

export function datacenterRoutes(datacenters: Datacenters) {
  return [
    route(
      'GET',
      '/games/:game_id/environments/:environment_id/datacenters',
      {
        operation: 'listDatacenters',
        summary: 'Lists the datacenters in which servers can run, by slug.',
        allow: ['identity', 'cloud', 'service'],
        access: 'read',
        limit: averagePerMinute('datacenters-list', 60_000),
        response: DatacentersAnswer,
        errors: ['GAME_NOT_FOUND', 'GAME_ENVIRONMENT_NOT_FOUND'],
      },
      async () => ({ datacenters: (await datacenters.list()).map(toDatacenter) }),
    ),
  ];
}
