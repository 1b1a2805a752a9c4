import { watched } from '../../platform/http/route.ts';
import { watchState } from '../../platform/watch/views.ts';
import type { Lobbies } from './lobbies.ts';
import { QueuePlace } from './matchmaking/queue-wire.ts';
import { nameAt, PREFIXES } from './prefixes.ts';

/** What a client calls whose find waits for its turn. */
export function queueRoutes({ development, queue }: Lobbies) {
  return PREFIXES.map((prefix) =>
    watched(
      `${prefix}/queue/:ticket`,
      {
        operation: nameAt(prefix, 'getQueuePlace'),
        allow: ['public', 'development'],
        is_tokenless: true,
        summary: 'Where a find stands that waits for its turn, by the ticket that it was sent with.',
        response: QueuePlace,
        errors: ['NAMESPACE_NOT_FOUND'],
      },
      ({ caller: { kind, namespace_id }, params: { ticket } }) =>
        watchState(
          kind === 'development' ? development.queuePlace : queue.place,
          { namespace_id, ticket },
          (place) => place,
        ),
    ),
  );
}
