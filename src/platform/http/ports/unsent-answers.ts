import { ServiceError } from '../../errors.ts';
import type { Events } from '../../events.ts';
import { errorResponse } from '../answers.ts';

/**
 * Creates the function that answers a request whose answer Bun cannot send. Without it, Bun would answer with a page for
 * developers, and write the URL of the request, which may have a token, to the standard error.
 */
export function createUnsentAnswers({ events, public_url }: { events: Pick<Events, 'emit'>; public_url: string }) {
  return (cause: unknown): Response => {
    const ray_id = Bun.randomUUIDv7();
    events.emit({ event: 'unexpected_failure', ray_id, cause });
    const answer = errorResponse(new ServiceError('ERROR', {}), { ray_id, public_url });
    answer.headers.set('rvt-ray-id', ray_id);
    return answer;
  };
}
