import type { SeatRequest } from './seat-requests.ts';

/** A request that did not get its planned seats. */
export type NotPlaced = Pick<SeatRequest, 'player_id' | 'namespace_id'>;

const BEFORE_ALL = Number.NEGATIVE_INFINITY;
const AFTER_ALL = Number.POSITIVE_INFINITY;

/**
 * Returns a function that decides whether a refusal may be wrong, because an earlier request of the round did not get
 * its planned seats. Later requests do not count: they took nothing from it, and a client that repeats a refused
 * request must not delay all others.
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
