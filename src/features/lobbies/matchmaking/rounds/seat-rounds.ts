import { ServiceError } from '../../../../platform/errors.ts';
import { SlotQueue } from '../../../../platform/limits/slot-queue.ts';
import { Slots } from '../../../../platform/limits/slots.ts';
import { RoundQueue } from '../../../../platform/rounds.ts';
import { errorOfRefusal } from '../../refusals.ts';
import type { LobbyCache } from '../lobby-cache/lobby-cache.ts';
import type { Seat } from '../seat.ts';
import { PendingRequest, type RequestOptions } from './pending-request.ts';
import { type NotPlaced, retryableAfter } from './retryable-refusals.ts';
import { type CommitDependencies, commitLobbies, commitLockedSeats, commitSeats } from './round-commit.ts';
import { type PlannedRound, partOf, pendingOf, planRound } from './round-plan.ts';
import type { SeatRequest } from './seat-requests.ts';
import type { SeatTaking } from './seat-taking.ts';

const ROUND_MAX = 512;
/** Maximum number of unanswered requests. Games share them: one game alone gets up to half. */
const UNANSWERED_MAX = 20_000;
/** Maximum number of namespaces for which lobbies are created, or locks waited for, at the same time. */
const SLOW_AT_ONCE_MAX = 6;
/** Maximum number of rounds that decide a request, if it loses a race in each. */
const ATTEMPTS_MAX = 16;

/** The error of a request that lost a race in each of its rounds. */
export class LostRaces extends ServiceError<'DATABASE_BUSY'> {
  constructor() {
    super('DATABASE_BUSY', {});
  }
}

interface RoundsDependencies {
  cache: LobbyCache;
  seat_taking: SeatTaking;
  createPlanned: CommitDependencies['createPlanned'];
  /** Connections in the pool of the database. */
  pool_max: number;
}

export type Rounds = ReturnType<typeof createSeatRounds>;

/**
 * Gives seats in rounds. Requests that arrive while a round is committed are decided and committed together in the next one,
 * or the one after: one statement for all seats in running lobbies. There is no timer: a request that comes alone is decided
 * at once.
 *
 * A namespace that takes longer is set aside, so that the others do not wait for it: it is being loaded, one of its lobbies
 * is locked, or lobbies are created for it. Its requests are decided again, in their order, after that.
 */
export function createSeatRounds(dependencies: RoundsDependencies) {
  const { cache, pool_max } = dependencies;
  const request_slots = new Slots(UNANSWERED_MAX);
  // Each takes a connection of the pool. They take at most half, because all other work needs the rest.
  const at_once = Math.max(1, Math.min(SLOW_AT_ONCE_MAX, Math.floor(pool_max / 2)));
  const slow_slots = new SlotQueue({ at_once, waiting_max: UNANSWERED_MAX });
  /** The namespaces set aside, with the requests that wait for them. */
  const set_aside = new Map<string, PendingRequest[]>();
  const rounds = new RoundQueue<PendingRequest>({ round_max: ROUND_MAX, work: decideRound });

  async function decideRound(round: PendingRequest[]): Promise<void> {
    rejectEnded(round);
    const ready = takeDecidable(unansweredOf(round));
    if (ready.length === 0) return;
    try {
      const { to_decide_again, unfinished } = await decide(dependencies, ready);
      // Never rejects: a failure rejects the requests.
      for (const namespace of unfinished) void finishLater(namespace);
      rounds.addFirst(rejectExhausted(to_decide_again));
    } catch (error) {
      rejectAll(ready, error);
    }
  }

  /** Returns the requests that can be decided now. The others wait for their namespace: it is set aside, or begins to load. */
  function takeDecidable(pending_requests: PendingRequest[]): PendingRequest[] {
    const ready: PendingRequest[] = [];
    for (const pending of pending_requests) {
      const { namespace_id } = pending.request;
      const held_back = set_aside.get(namespace_id);
      if (held_back) {
        held_back.push(pending);
      } else if (cache.isLoaded(namespace_id)) {
        ready.push(pending);
      } else {
        // Never rejects: a failure rejects the requests.
        void setAside(namespace_id, [pending], () => cache.load(namespace_id).then(() => []));
      }
    }
    return ready;
  }

  /** Finishes a round for one namespace. A failure rejects the requests of that round, but none that have come since. */
  async function finishLater({ namespace_id, game_id, pending_requests, finish }: UnfinishedNamespace): Promise<void> {
    await setAside(namespace_id, [], async () => {
      try {
        return rejectExhausted(await slow_slots.run(game_id, finish));
      } catch (error) {
        rejectAll(pending_requests, error);
        return [];
      }
    });
  }

  /**
   * Sets a namespace aside while `work` runs. `work` returns the requests to decide again. The requests in `held_back`,
   * and those that come meanwhile, are decided after them, or rejected if `work` fails.
   */
  async function setAside(
    namespace_id: string,
    held_back: PendingRequest[],
    work: () => Promise<PendingRequest[]>,
  ): Promise<void> {
    set_aside.set(namespace_id, held_back);
    let to_decide: PendingRequest[] = [];
    try {
      to_decide = [...(await work()), ...held_back];
    } catch (error) {
      rejectAll(held_back, error);
    } finally {
      set_aside.delete(namespace_id);
    }
    rounds.addFirst(to_decide);
  }

  /** Counts an attempt of each request. Rejects those that have had their maximum of attempts, and returns the others. */
  function rejectExhausted(pending_requests: PendingRequest[]): PendingRequest[] {
    for (const pending of pending_requests) {
      pending.attempts += 1;
      if (pending.attempts < ATTEMPTS_MAX) continue;
      // The entry may be wrong, because few requests lose as many races as this.
      cache.forget(pending.request.namespace_id);
      pending.reject(new LostRaces());
    }
    return unansweredOf(pending_requests);
  }

  /** Rejects requests whose commit failed, and forgets the cache's entries, in which the planned seats are counted. */
  function rejectAll(pending_requests: PendingRequest[], error: unknown): void {
    for (const pending of pending_requests) {
      cache.forget(pending.request.namespace_id);
      pending.reject(error);
    }
  }

  return {
    /** Returns a seat for the request. Throws the error of a refused request. */
    takeSeat(request: SeatRequest, options: RequestOptions = {}): Promise<Seat> {
      const { game_id } = request;
      if (!request_slots.hasRoomFor(game_id)) throw new ServiceError('DATABASE_BUSY', {});
      request_slots.take(game_id);
      const pending = new PendingRequest(request, options, () => request_slots.free(game_id));
      rounds.add(pending);
      return pending.seat;
    },
  };
}

/** The result of a round. */
interface Decision {
  /**
   * Requests without an answer: they lost a race, were postponed by the plan, may have been refused wrongly, or are over the
   * limit of their client only together with others.
   */
  to_decide_again: PendingRequest[];
  /** The namespaces that take longer than the others of the round. */
  unfinished: UnfinishedNamespace[];
}

interface UnfinishedNamespace {
  namespace_id: string;
  game_id: string;
  /** Its requests. */
  pending_requests: PendingRequest[];
  /** Finishes the round for it. Returns the requests to decide again. */
  finish(): Promise<PendingRequest[]>;
}

/** Rejects the requests whose time is over, or whose client has gone. */
function rejectEnded(round: PendingRequest[]): void {
  for (const pending of round) {
    const { deadline } = pending;
    if (deadline?.is_over) pending.reject(deadline.toError());
  }
}

function unansweredOf(pending_requests: PendingRequest[]): PendingRequest[] {
  return pending_requests.filter(({ is_answered }) => !is_answered);
}

/**
 * Decides a round: plans it, and answers its requests with seats and errors. Leaves the namespaces unfinished whose lobbies
 * are locked, or for which lobbies are to be created.
 */
async function decide(
  dependencies: CommitDependencies & { cache: Pick<LobbyCache, 'read'> },
  pending_requests: PendingRequest[],
): Promise<Decision> {
  for (const { draft } of pending_requests) draft.recordRound();
  const round = await planRound(dependencies.cache, pending_requests);
  const { not_placed, locked } = await commitSeats(dependencies, round);
  const locked_ids = new Set(locked.map(({ namespace_id }) => namespace_id));
  const slow = new Map([...locked, ...round.new_lobbies].map(({ namespace_id, game_id }) => [namespace_id, game_id]));
  const unfinished = [...slow].map(([namespace_id, game_id]) => {
    const part = partOf(round, (other) => other === namespace_id);
    const is_locked = locked_ids.has(namespace_id);
    const finish = () => finishPart(dependencies, part, { not_placed, is_locked });
    return { namespace_id, game_id, pending_requests: part.pending_requests, finish };
  });
  const finished = partOf(round, (namespace_id) => !slow.has(namespace_id));
  answerRefusals(finished, not_placed);
  return { to_decide_again: unansweredOf(finished.pending_requests), unfinished };
}

/** Commits what a round has left of one namespace, and answers its requests. Returns those to decide again. */
async function finishPart(
  dependencies: CommitDependencies,
  part: PlannedRound,
  { not_placed, is_locked }: { not_placed: NotPlaced[]; is_locked: boolean },
): Promise<PendingRequest[]> {
  const not_placed_in_running = is_locked ? await commitLockedSeats(dependencies, part) : [];
  const not_placed_in_new = await commitLobbies(dependencies, part);
  answerRefusals(part, [...not_placed, ...not_placed_in_running, ...not_placed_in_new]);
  return unansweredOf(part.pending_requests);
}

/** Answers the requests that the plan refuses, except for those to decide again (`retryableAfter`). */
function answerRefusals(part: PlannedRound, not_placed: NotPlaced[]): void {
  const { pending_requests, refusals, planned_first } = part;
  if (refusals.length === 0) return;
  const requests = pending_requests.map(({ request }) => request);
  const isRetryable = retryableAfter({ requests, planned_first, not_placed });
  for (const { request, code } of refusals) {
    if (!isRetryable(request)) pendingOf(part, request).reject(errorOfRefusal(code));
  }
}
