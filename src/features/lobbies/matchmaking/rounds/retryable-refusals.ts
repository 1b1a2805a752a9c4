import type { SeatRequest } from './seat-requests.ts';

/** A request that did not get its planned seats. */
export type NotPlaced = Pick<SeatRequest, 'player_id' | 'namespace_id'>;

const BEFORE_ALL = Number.NEGATIVE_INFINITY;
const AFTER_ALL = Number.POSITIVE_INFINITY;

interface RoundOutcome {
  requests: SeatRequest[];
  /** Requests that were planned before all others, from lobbies in memory. Later ones may have taken seats of earlier ones. */
  planned_first: ReadonlySet<SeatRequest>;
  not_placed: NotPlaced[];
}

/**
 * Returns a function that decides whether a refusal may be wrong, because a request that was planned before it did not
 * get its planned seats. Requests planned later do not count: they took nothing from it, and a client that repeats a
 * refused request must not delay all others.
 */
export function retryableAfter({
  requests,
  planned_first,
  not_placed,
}: RoundOutcome): (request: SeatRequest) => boolean {
  // Finds from the queue are planned before the others of their plan.
  const isQueued = (request: SeatRequest) => request.kind === 'find' && request.ticket !== undefined;
  const isFirst = (request: SeatRequest) => planned_first.has(request) || isQueued(request);
  const positions = new Map(
    requests.map((request, position) => [request.player_id, isFirst(request) ? BEFORE_ALL : position]),
  );
  const positionOf = ({ player_id }: NotPlaced) => positions.get(player_id) ?? BEFORE_ALL;
  const earliest_not_placed = new Map<string, number>();
  for (const request of not_placed) {
    const earlier = earliest_not_placed.get(request.namespace_id) ?? AFTER_ALL;
    earliest_not_placed.set(request.namespace_id, Math.min(earlier, positionOf(request)));
  }
  return (request) => (earliest_not_placed.get(request.namespace_id) ?? AFTER_ALL) <= positionOf(request);
}
