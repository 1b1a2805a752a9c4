import type { SeatRequest } from './seat-requests.ts';

/** A request that does not get what was planned for it. */
export type NotPlaced = Pick<SeatRequest, 'player_id' | 'namespace_id'>;

const BEFORE_ALL = Number.NEGATIVE_INFINITY;
const AFTER_ALL = Number.POSITIVE_INFINITY;

/**
 * Returns whether a refusal may be wrong: an earlier request of the round was not placed, so there may be room after all. A
 * later one took nothing away; else one that asks again and again, and may not, would keep all others waiting.
 */
export function retryableAfter(requests: SeatRequest[], not_placed: NotPlaced[]): (request: SeatRequest) => boolean {
  // Finds from the queue are decided first.
  const isQueued = (request: SeatRequest) => request.kind === 'find' && request.ticket !== undefined;
  const positions = new Map(
    requests.map((request, position) => [request.player_id, isQueued(request) ? BEFORE_ALL : position]),
  );
  const positionOf = ({ player_id }: NotPlaced) => positions.get(player_id) ?? BEFORE_ALL;
  const first = new Map<string, number>();
  for (const one of not_placed) {
    first.set(one.namespace_id, Math.min(first.get(one.namespace_id) ?? AFTER_ALL, positionOf(one)));
  }
  return (request) => (first.get(request.namespace_id) ?? AFTER_ALL) <= positionOf(request);
}
