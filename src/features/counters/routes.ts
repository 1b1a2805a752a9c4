import { route, watched } from '../../platform/http/route.ts';
import { watchState } from '../../platform/watch/views.ts';
import { type Counters, PERIODS } from './counters.ts';
import { CountersAnswer, CountersOfAllAnswer, CountersQuery, toStep } from './wire.ts';

export function counterRoutes(counters: Counters) {
  return [
    watched(
      '/cloud/games/:game_id/namespaces/:namespace_id/counters',
      {
        operation: 'getCounters',
        summary:
          'Returns how many players, lobbies, finds and refusals a namespace had over the last hour, day or week, and how long finds took.',
        allow: ['identity', 'cloud', 'share'],
        access: 'read',
        query: CountersQuery,
        response: CountersAnswer,
        errors: ['GAME_NOT_FOUND', 'GAME_ENVIRONMENT_NOT_FOUND'],
      },
      ({ params: { namespace_id }, query: { window: period = 'day' } }) =>
        watchState(counters.counted, { namespace_id, period }, (steps) => ({
          step_ms: PERIODS[period].step_ms,
          steps: steps.map(toStep),
        })),
    ),
    route(
      'GET',
      '/cloud/service/counters',
      {
        operation: 'getServiceCounters',
        summary:
          'Returns how many players, lobbies and requests for seats all namespaces had in each minute of the last hour. For administrators.',
        allow: ['identity'],
        response: CountersOfAllAnswer,
        errors: ['IDENTITY_NOT_ADMIN'],
      },
      async ({ caller }) => {
        const minutes = await counters.ofAll(caller);
        return { minutes: minutes.map((minute) => ({ ...minute, start_ts: minute.start_ts.toISOString() })) };
      },
    ),
  ];
}
