import { readMoment } from '../../platform/http/moments.ts';
import { route } from '../../platform/http/route.ts';
import type { Billing } from './billing.ts';
import { Usage, UsageQuery } from './wire.ts';

export function billingRoutes(billing: Billing) {
  return [
    route(
      'GET',
      '/cloud/groups/:group_id/billing/usage',
      {
        operation: 'getUsage',
        summary: "Returns the processor time that a group's games used, by game and region. For members.",
        allow: ['identity'],
        query: UsageQuery,
        response: Usage,
        errors: ['GROUP_NOT_FOUND', 'VALIDATION_ERROR'],
      },
      async ({ caller, params, query }) =>
        await billing.usageOf(caller, params.group_id, {
          start: readMoment('query_start_ts', query.query_start_ts),
          end: readMoment('query_end_ts', query.query_end_ts),
        }),
    ),
  ];
}
