import { watched } from '../../../../platform/http/route.ts';
import { watchState } from '../../../../platform/watch/views.ts';
import { nameAt, PREFIXES } from '../../../matchmaker-paths.ts';
import type { Lobbies } from '../../lobbies.ts';
import { QueuePosition } from './queue-wire.ts';

/** Routes for clients whose find waits in the queue. */
export function queueRoutes({ development, queue }: Lobbies) {
  return PREFIXES.map((prefix) =>
    watched(
      `${prefix}/queue/:ticket`,
      {
        operation: nameAt(prefix, 'getQueuePosition'),
        allow: ['public', 'development'],
        is_tokenless: true,
        summary: 'Returns the position of a waiting find in the queue, by the ticket that it was sent with.',
        response: QueuePosition,
        errors: ['NAMESPACE_NOT_FOUND'],
      },
      ({ caller: { kind, namespace_id }, params: { ticket } }) =>
        watchState(
          kind === 'development' ? development.queuePosition : queue.position,
          { namespace_id, ticket },
          (position) => position,
        ),
    ),
  );
}
