import type { LockOptions } from '../../../../platform/database/database.ts';
import { isLocked } from '../../../../platform/database/failures.ts';
import { assert, ServiceError } from '../../../../platform/errors.ts';
import { forEachAtOnce } from '../../../../platform/pacing.ts';
import { overLimit } from '../../refusals.ts';
import type { LobbyCache } from '../lobby-cache/lobby-cache.ts';
import type { CreatePlanned, LobbyOutcome } from '../new-lobbies/create-lobbies.ts';
import { toSeat } from '../seat.ts';
import type { OverLimit } from './admission-store.ts';
import type { PendingRequest } from './pending-request.ts';
import type { Assignment, PlannedLobby } from './planner.ts';
import type { NotPlaced } from './retryable-refusals.ts';
import { type PlannedRound, partOf, pendingOf } from './round-plan.ts';
import { playerIdsOf, type SeatRequest } from './seat-requests.ts';
import type { SeatTaking } from './seat-taking.ts';
import type { ProposedSeat, TakenSeats } from './seats-store.ts';

/** How long a round waits for the locks of each namespace, once it has waited in vain for those of all of them. */
const NAMESPACE_LOCK_WAIT_MAX_MS = 20;
/** Each takes a connection of the pool. */
const NAMESPACES_AT_ONCE_MAX = 4;
/** The request number of a new lobby's creator. */
const CREATOR = 0;

export interface CommitDependencies {
  cache: Pick<LobbyCache, 'applyCommit' | 'reload' | 'mayHaveQueue'>;
  seat_taking: SeatTaking;
  createPlanned: CreatePlanned;
}

/** What a commit left undone. */
interface CommitGaps {
  /** The requests that did not get their planned seats. */
  not_placed: NotPlaced[];
  /** The namespaces of which no seats are committed yet, because another transaction has locked their lobbies. */
  locked: Pick<SeatRequest, 'namespace_id' | 'game_id'>[];
}

/** Commits the planned seats in running lobbies: together, or each namespace alone if one of them is locked. */
export async function commitSeats(dependencies: CommitDependencies, round: PlannedRound): Promise<CommitGaps> {
  if (round.assignments.length === 0) return { not_placed: [], locked: [] };
  const options = { has_queue: hasQueue(dependencies, round), is_strict: isStrict(round) };
  let taken: TakenSeats;
  try {
    taken = await dependencies.seat_taking.takeUnlessLocked(round.assignments.flatMap(toProposedSeats), options);
  } catch (error) {
    if (!isLocked(error)) throw error;
    return await commitNamespaces(dependencies, round);
  }
  return { not_placed: await applySeats(dependencies, round, taken), locked: [] };
}

/** Commits the planned seats of each namespace alone. Leaves out those that are locked. */
async function commitNamespaces(dependencies: CommitDependencies, round: PlannedRound): Promise<CommitGaps> {
  const namespaces = [...new Map(round.assignments.map(({ request }) => [request.namespace_id, request])).values()];
  // The commit of the whole round has just found it locked.
  if (namespaces.length === 1) return { not_placed: [], locked: namespaces };
  const gaps: CommitGaps = { not_placed: [], locked: [] };
  await forEachAtOnce(namespaces, NAMESPACES_AT_ONCE_MAX, async (namespace) => {
    const part = partOf(round, (namespace_id) => namespace_id === namespace.namespace_id);
    try {
      const not_placed = await commitPart(dependencies, part, { lock_wait_max_ms: NAMESPACE_LOCK_WAIT_MAX_MS });
      gaps.not_placed.push(...not_placed);
    } catch (error) {
      if (!isLocked(error)) throw error;
      gaps.locked.push(namespace);
    }
  });
  return gaps;
}

/** Commits the planned seats of one namespace. Returns the requests that did not get theirs. */
async function commitPart(
  dependencies: CommitDependencies,
  part: PlannedRound,
  options?: LockOptions,
): Promise<NotPlaced[]> {
  if (part.assignments.length === 0) return [];
  const taken = await dependencies.seat_taking.takeInNamespace(part.assignments.flatMap(toProposedSeats), options);
  return await applySeats(dependencies, part, taken);
}

/**
 * Commits the planned seats of a locked namespace, for requests that still wait. Returns the requests that did not get
 * theirs.
 */
export async function commitLockedSeats(dependencies: CommitDependencies, part: PlannedRound): Promise<NotPlaced[]> {
  const ended = part.assignments.filter(({ request }) => hasEnded(part, request));
  const assignments = part.assignments.filter((assignment) => !ended.includes(assignment));
  const not_placed = await commitPart(dependencies, { ...part, assignments });
  await reloadPlanned(dependencies, ended);
  return [...not_placed, ...ended.map(({ request }) => request)];
}

/**
 * Creates the planned lobbies, except for requests that no longer wait: a lobby is left out with its creator, and
 * otherwise only loses those first requests. Returns the requests of lobbies that were left out or not created, or in
 * which a client was over its limit.
 */
export async function commitLobbies(dependencies: CommitDependencies, part: PlannedRound): Promise<NotPlaced[]> {
  const to_create: PlannedLobby[] = [];
  const not_placed: NotPlaced[] = [];
  for (const lobby of part.new_lobbies) {
    const first_requests = lobby.first_requests.filter((request) => !hasEnded(part, request));
    if (first_requests[CREATOR] === lobby.first_requests[CREATOR]) to_create.push({ ...lobby, first_requests });
    else not_placed.push(...firstRequestsOf(lobby));
  }
  const outcomes = to_create.length > 0 ? await dependencies.createPlanned(to_create) : [];
  return [...not_placed, ...outcomes.flatMap((outcome) => applyLobbyOutcome(dependencies, part, outcome))];
}

/** Returns whether the time of a request is over, or its client has gone. */
function hasEnded(round: PlannedRound, request: Pick<SeatRequest, 'player_id'>): boolean {
  return pendingOf(round, request).deadline?.is_over === true;
}

/** Returns whether a client of the round was over its limit before. */
function isStrict(round: PlannedRound): boolean {
  return round.assignments.some(({ request }) => pendingOf(round, request).was_over_limit);
}

/**
 * Returns whether finds may wait in the namespaces of a round. It assumes so for a request that is decided again: a find may
 * have entered the queue on another process.
 */
function hasQueue({ cache }: CommitDependencies, round: PlannedRound): boolean {
  return round.assignments.some(({ request }) => {
    const is_repeated = pendingOf(round, request).attempts > 0;
    return is_repeated || cache.mayHaveQueue(request.namespace_id);
  });
}

/** Answers the requests whose seats were taken, or whose client is over its limit. Returns those without their seats. */
async function applySeats(
  { cache }: CommitDependencies,
  round: PlannedRound,
  { accepting, over_limit }: TakenSeats,
): Promise<SeatRequest[]> {
  const { assignments } = round;
  const by_lobby = new Map(accepting.map((lobby) => [lobby.lobby_id, lobby]));
  for (const lobby of accepting) cache.applyCommit(lobby.namespace_id, lobby.changed, lobby);
  const requests = assignments.map(({ request }) => pendingOf(round, request));
  const over = rejectOverLimit(requests, over_limit);
  for (const pending of over) pending.was_over_limit = true;
  const not_placed: SeatRequest[] = [];
  for (const { request, lobby_id } of assignments) {
    const pending = pendingOf(round, request);
    const lobby = by_lobby.get(lobby_id);
    if (lobby && !over.has(pending)) pending.resolve(toSeat(lobby, false));
    else not_placed.push(request);
  }
  await reloadPlanned(
    { cache },
    assignments.filter(({ lobby_id }) => !by_lobby.has(lobby_id)),
  );
  return not_placed;
}

/** Reloads the lobbies in which planned seats were not taken, because the cache still counts these seats. */
async function reloadPlanned({ cache }: Pick<CommitDependencies, 'cache'>, assignments: Assignment[]): Promise<void> {
  for (const [namespace_id, in_namespace] of Map.groupBy(assignments, ({ request }) => request.namespace_id)) {
    await cache.reload(namespace_id, [...new Set(in_namespace.map(({ lobby_id }) => lobby_id))]);
  }
}

function toProposedSeats({ request, lobby_id }: Assignment, request_number: number): ProposedSeat[] {
  const { namespace_id, address, client } = request;
  const player_ids = playerIdsOf(request);
  const kind = request.kind === 'find' && player_ids.length > 1 ? 'party' : request.kind;
  const ticket = request.kind === 'find' ? (request.ticket ?? null) : null;
  const { name, players_max } = client;
  return player_ids.map((player_id) => ({
    player_id,
    lobby_id,
    namespace_id,
    address,
    kind,
    request_number,
    ticket,
    client: name,
    players_max,
  }));
}

/** Answers the first requests of a lobby that was created or refused. Returns all of them if any is not in it. */
function applyLobbyOutcome({ cache }: CommitDependencies, round: PlannedRound, outcome: LobbyOutcome): NotPlaced[] {
  const { planned, over_limit } = outcome;
  const requests = planned.first_requests.map((request) => pendingOf(round, request));
  const over = rejectOverLimit(requests, over_limit);
  const within_limit = requests.filter((pending) => !over.has(pending));
  if (outcome.is === 'created') {
    cache.applyCommit(planned.namespace_id, outcome.lobby.changed, outcome.lobby);
    for (const pending of within_limit) pending.resolve(toSeat(outcome.lobby, true));
  } else if (outcome.is === 'refused' && !isCreatorOverAlone(over_limit)) {
    for (const pending of within_limit) refuseLobby(pending, outcome.error);
  }
  const is_complete = outcome.is === 'created' && over_limit.length === 0;
  return is_complete ? [] : firstRequestsOf(planned);
}

/**
 * Rejects the requests that alone exceed the limit of their client. Returns all that exceed it: those that do so only
 * together with others are decided again. `requests`: those of the statement, in the order of their numbers.
 */
function rejectOverLimit(requests: PendingRequest[], over_limit: OverLimit[]): ReadonlySet<PendingRequest> {
  const over = new Set<PendingRequest>();
  for (const { request_number, is_over_alone } of over_limit) {
    const pending = requests[request_number];
    assert(pending, 'only requests of the statement are over a limit');
    over.add(pending);
    if (is_over_alone) pending.reject(overLimit(pending.request));
  }
  return over;
}

/** Returns whether a lobby was refused only because of its creator. In the next round, another request may create it. */
function isCreatorOverAlone(over_limit: OverLimit[]): boolean {
  return over_limit.some(({ request_number, is_over_alone }) => request_number === CREATOR && is_over_alone);
}

const firstRequestsOf = ({ first_requests, namespace_id }: PlannedLobby): NotPlaced[] =>
  first_requests.map(({ player_id }) => ({ player_id, namespace_id }));

/**
 * Rejects a request whose lobby could not be created. The first time that there are too many lobbies, it gets no answer:
 * another process may have created a lobby with free seats.
 */
function refuseLobby(pending: PendingRequest, error: unknown): void {
  const is_too_many = error instanceof ServiceError && error.code === 'MATCHMAKER_TOO_MANY_LOBBIES';
  if (!is_too_many || pending.had_too_many_lobbies) pending.reject(toCreateRefusal(pending.request, error));
  pending.had_too_many_lobbies = true;
}

/**
 * Returns the error for a request whose lobby could not be created. That lobby may have been another request's, in which the
 * plan gave a seat to a find that must not create lobbies: for such a find, a refused lobby means that none has a free seat.
 */
function toCreateRefusal(request: SeatRequest, error: unknown): unknown {
  const creates_none = request.kind === 'find' && !request.search.new_lobby;
  const is_refused = error instanceof ServiceError && LOBBY_REFUSALS.has(error.code);
  return creates_none && is_refused ? new ServiceError('MATCHMAKER_NO_AVAILABLE_LOBBIES', {}) : error;
}

/** Why a lobby is not created, other than a failure. */
const LOBBY_REFUSALS = new Set<string>(['MATCHMAKER_TOO_MANY_LOBBIES', 'MATCHMAKER_AUTO_CREATE_FAILED']);
