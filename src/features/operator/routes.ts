import { route } from '../../platform/http/route.ts';
import { METRICS_TYPE } from './metrics.ts';
import type { Operator } from './operator.ts';
import { STEP_MS } from './samples.ts';
import {
  DatabaseAnswer,
  LogAnswer,
  LogQuery,
  QueueAnswer,
  SamplesAnswer,
  ServiceAnswer,
  toDatabaseState,
  toLogEvent,
  toServiceLoop,
} from './wire.ts';

export function operatorRoutes(operator: Operator) {
  return [
    route(
      'GET',
      '/cloud/service',
      {
        operation: 'getService',
        summary:
          'Returns the process that answers, what it uses of its limits, and its background work. For administrators.',
        allow: ['identity'],
        response: ServiceAnswer,
        errors: ['IDENTITY_NOT_ADMIN'],
      },
      async ({ caller }) => {
        const { process, limits, loops } = await operator.getService(caller);
        return { process, limits, loops: loops.map(toServiceLoop) };
      },
    ),
    route(
      'GET',
      '/metrics',
      {
        operation: 'getMetrics',
        summary:
          'Returns the metrics of the process that answers, in the text format of OpenMetrics. For administrators, and with a token for metrics.',
        allow: ['identity', 'metrics'],
        // Its answer is not JSON.
        is_page: true,
        errors: ['IDENTITY_NOT_ADMIN'],
      },
      async ({ caller }) =>
        new Response(await operator.readMetrics(caller), { headers: { 'content-type': METRICS_TYPE } }),
    ),
    route(
      'GET',
      '/cloud/service/database',
      {
        operation: 'getDatabase',
        summary:
          'Returns the state of the database that all processes share: its size, connections and largest tables. For administrators.',
        allow: ['identity'],
        response: DatabaseAnswer,
        errors: ['IDENTITY_NOT_ADMIN'],
      },
      async ({ caller }) => ({ database: toDatabaseState(await operator.getDatabase(caller)) }),
    ),
    route(
      'GET',
      '/cloud/service/queue',
      {
        operation: 'getQueue',
        summary: 'Returns how many finds wait for their turn, by namespace. For administrators.',
        allow: ['identity'],
        response: QueueAnswer,
        errors: ['IDENTITY_NOT_ADMIN'],
      },
      async ({ caller }) => await operator.getQueue(caller),
    ),
    route(
      'GET',
      '/cloud/service/log',
      {
        operation: 'listLogEvents',
        summary: 'Lists the latest events of the log of the process that answers. For administrators.',
        allow: ['identity'],
        query: LogQuery,
        response: LogAnswer,
        errors: ['IDENTITY_NOT_ADMIN'],
      },
      async ({ caller, query: { level = 'info' } }) => {
        const { process, events } = await operator.listEvents(caller, level);
        return { process, events: events.map(toLogEvent) };
      },
    ),
    route(
      'GET',
      '/cloud/service/samples',
      {
        operation: 'listServiceSamples',
        summary:
          'Lists what the process that answers used and did within the last hour, every 15 seconds. For administrators.',
        allow: ['identity'],
        response: SamplesAnswer,
        errors: ['IDENTITY_NOT_ADMIN'],
      },
      async ({ caller }) => {
        const { process, samples } = await operator.listSamples(caller);
        return { process, step_ms: STEP_MS, samples: [...samples] };
      },
    ),
  ];
}
