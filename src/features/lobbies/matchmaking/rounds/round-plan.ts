import { assert } from '../../../../platform/errors.ts';
import type { LobbyCache } from '../lobby-cache/lobby-cache.ts';
import { LobbyIndex } from '../lobby-cache/lobby-index.ts';
import type { PendingRequest } from './pending-request.ts';
import { type Assignment, type Plan, planSeats } from './planner.ts';
import type { SeatRequest } from './seat-requests.ts';

/** A round with its plan, or the part of it that is about some of its namespaces. */
export interface PlannedRound extends Pick<Plan, 'assignments' | 'new_lobbies' | 'refusals'> {
  /** Its requests, in their order. */
  pending_requests: PendingRequest[];
  /** Requests that got seats from the cache: planned before all others, even before earlier ones. */
  planned_first: ReadonlySet<SeatRequest>;
  /** The requests of the whole round, by their first player. */
  by_player: ReadonlyMap<string, PendingRequest>;
}

/** Returns the pending request of a request that the plan names. */
export function pendingOf(
  { by_player }: Pick<PlannedRound, 'by_player'>,
  { player_id }: Pick<SeatRequest, 'player_id'>,
): PendingRequest {
  const pending = by_player.get(player_id);
  assert(pending, 'a plan names requests of its round');
  return pending;
}

/** Returns the part of a round for the namespaces that `isIncluded` accepts. */
export function partOf(round: PlannedRound, isIncluded: (namespace_id: string) => boolean): PlannedRound {
  const isRequestIncluded = ({ request }: { request: SeatRequest }) => isIncluded(request.namespace_id);
  return {
    ...round,
    pending_requests: round.pending_requests.filter(isRequestIncluded),
    assignments: round.assignments.filter(isRequestIncluded),
    new_lobbies: round.new_lobbies.filter(({ namespace_id }) => isIncluded(namespace_id)),
    refusals: round.refusals.filter(isRequestIncluded),
  };
}

const NO_NAMESPACES: ReadonlySet<string> = new Set();

/**
 * Plans seats with the cached lobbies. Requests without a seat are planned again with the lobbies read from the database
 * (I-M7). The lobbies of a namespace are read from it at once if an earlier round left one of its requests without an answer.
 */
export async function planRound(
  cache: Pick<LobbyCache, 'read'>,
  pending_requests: PendingRequest[],
): Promise<PlannedRound> {
  const by_player = new Map(pending_requests.map((pending) => [pending.request.player_id, pending]));
  const repeated = listRepeated(pending_requests);
  const first = await plan(cache, pending_requests, { fresh: repeated });
  const seated = new Set(first.assignments.map(({ request }) => request));
  // A fresh plan decided all requests of a namespace in their order, so none took a seat from an earlier one that it refused.
  const planned_first = repeated.size === 0 ? seated : without(seated, repeated);
  const round = { pending_requests, planned_first, by_player };
  // Those whose namespace could not be read have been answered.
  const remaining = pending_requests.filter(({ request, is_answered }) => !is_answered && !seated.has(request));
  if (remaining.length === 0) return toPlannedRound(first, round);
  const second = await plan(cache, remaining, { fresh: 'all', assigned: first.assignments });
  const candidates = new Map([...first.candidates, ...second.candidates]);
  return toPlannedRound({ ...second, assignments: [...first.assignments, ...second.assignments], candidates }, round);
}

/** Returns the namespaces with a request that an earlier round left without an answer. */
function listRepeated(pending_requests: PendingRequest[]): ReadonlySet<string> {
  if (pending_requests.every(({ attempts }) => attempts === 0)) return NO_NAMESPACES;
  const repeated = pending_requests.filter(({ attempts }) => attempts > 0);
  return new Set(repeated.map(({ request }) => request.namespace_id));
}

/** Returns the requests of all other namespaces. */
function without(requests: ReadonlySet<SeatRequest>, namespaces: ReadonlySet<string>): ReadonlySet<SeatRequest> {
  return new Set([...requests].filter(({ namespace_id }) => !namespaces.has(namespace_id)));
}

/** Records the candidates in the receipt drafts, and returns the planned round. */
function toPlannedRound(
  { assignments, new_lobbies, refusals, candidates }: Plan,
  round: Pick<PlannedRound, 'pending_requests' | 'planned_first' | 'by_player'>,
): PlannedRound {
  for (const { request, draft } of round.pending_requests) {
    if (draft.is_kept) draft.recordCandidates(candidates.get(request) ?? []);
  }
  return { ...round, assignments, new_lobbies, refusals };
}

interface PlanOptions {
  /** The namespaces whose lobbies are read from the database first. */
  fresh: ReadonlySet<string> | 'all';
  /** The seats that the round's first plan has given. */
  assigned?: Assignment[];
}

/**
 * Plans requests with the lobbies of their namespaces. Leaves out those whose namespace must be loaded first. Rejects those
 * whose namespace cannot be read; no other namespace fails with it.
 */
async function plan(
  cache: Pick<LobbyCache, 'read'>,
  pending_requests: PendingRequest[],
  { fresh, assigned = [] }: PlanOptions,
): Promise<Plan> {
  const requests = pending_requests.map(({ request }) => request);
  const namespace_ids = [...new Set(requests.map(({ namespace_id }) => namespace_id))];
  const reads = await Promise.allSettled(
    namespace_ids.map((namespace_id) =>
      cache.read(namespace_id, { is_fresh: fresh === 'all' || fresh.has(namespace_id) }),
    ),
  );
  const indexes = new Map<string, LobbyIndex>();
  for (const [at, namespace_id] of namespace_ids.entries()) {
    const read = reads[at];
    if (read?.status === 'fulfilled' && read.value) indexes.set(namespace_id, read.value);
    if (read?.status === 'rejected') rejectThere(pending_requests, namespace_id, read.reason);
  }
  const isRead = ({ namespace_id }: SeatRequest) => indexes.has(namespace_id);
  return planSeats(requests.filter(isRead), (namespace_id) => indexes.get(namespace_id) ?? new LobbyIndex(), assigned);
}

/** Rejects the requests of one namespace. */
function rejectThere(pending_requests: PendingRequest[], namespace_id: string, error: unknown): void {
  for (const pending of pending_requests) {
    if (pending.request.namespace_id === namespace_id) pending.reject(error);
  }
}
