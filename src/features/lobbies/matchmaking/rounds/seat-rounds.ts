import { ServiceError } from '../../../../platform/errors.ts';
import { SlotQueue } from '../../../../platform/limits/slot-queue.ts';
import { Slots } from '../../../../platform/limits/slots.ts';
import { RoundQueue } from '../../../../platform/rounds.ts';
import { toRefusal } from '../../refusals.ts';
import type { LobbyCache } from '../lobby-cache/lobby-cache.ts';
import type { Seat } from '../seat.ts';
import { PendingRequest, type RequestOptions } from './pending-request.ts';
import { type NotPlaced, retryableAfter } from './retryable-refusals.ts';
import { type CommitDependencies, commitLobbies, commitLockedSeats, commitSeats } from './round-commit.ts';
import { type PlannedRound, partOf, planRound } from './round-plan.ts';
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
  /** The namespaces set aside, with the requests that have come since. */
  const set_aside = new Map<string, PendingRequest[]>();
  const rounds = new RoundQueue<PendingRequest>({ round_max: ROUND_MAX, work: decideRound });

  async function decideRound(round: PendingRequest[]): Promise<void> {
    for (const one of round) if (one.deadline?.is_over) one.reject(one.deadline.toError());
    const ready = takeDecidable(round.filter(({ is_answered }) => !is_answered));
    if (ready.length === 0) return;
    try {
      const { to_decide_again, unfinished } = await decide(dependencies, ready);
      // Never rejects: a failure rejects the requests.
      for (const one of unfinished) void finishLater(one);
      rounds.addFirst(rejectExhausted(to_decide_again));
    } catch (error) {
      rejectAll(ready, error);
    }
  }

  /** Returns the requests that can be decided now. The others wait for their namespace: it is set aside, or begins to load. */
  function takeDecidable(pending: PendingRequest[]): PendingRequest[] {
    const ready: PendingRequest[] = [];
    for (const one of pending) {
      const { namespace_id } = one.request;
      const waiting = set_aside.get(namespace_id);
      if (waiting) waiting.push(one);
      else if (cache.isLoaded(namespace_id)) ready.push(one);
      // Never rejects: a failure rejects the requests.
      else void setAside(namespace_id, [one], () => cache.load(namespace_id).then(() => []));
    }
    return ready;
  }

  /** Finishes a round for one namespace. A failure rejects the requests of that round, but none that have come since. */
  async function finishLater({ namespace_id, game_id, pending, finish }: UnfinishedNamespace): Promise<void> {
    await setAside(namespace_id, [], async () => {
      try {
        return rejectExhausted(await slow_slots.run(game_id, finish));
      } catch (error) {
        rejectAll(pending, error);
        return [];
      }
    });
  }

  /**
   * Sets a namespace aside while `work` runs. `work` returns the requests to decide again. The requests in `waiting`,
   * and those that come meanwhile, are decided after them, or rejected if `work` fails.
   */
  async function setAside(
    namespace_id: string,
    waiting: PendingRequest[],
    work: () => Promise<PendingRequest[]>,
  ): Promise<void> {
    set_aside.set(namespace_id, waiting);
    let to_decide: PendingRequest[] = [];
    try {
      to_decide = [...(await work()), ...waiting];
    } catch (error) {
      rejectAll(waiting, error);
    } finally {
      set_aside.delete(namespace_id);
    }
    rounds.addFirst(to_decide);
  }

  /**
   * Counts an attempt of each request. Rejects those that have had their maximum of attempts, and returns the others.
   */
  function rejectExhausted(pending: PendingRequest[]): PendingRequest[] {
    for (const one of pending) {
      one.attempts += 1;
      if (one.attempts < ATTEMPTS_MAX) continue;
      // The entry may be wrong, because few requests lose as many races as this.
      cache.forget(one.request.namespace_id);
      one.reject(new LostRaces());
    }
    return pending.filter(({ is_answered }) => !is_answered);
  }

  /** Rejects requests whose commit failed, and forgets the cache's entries, in which the planned seats are counted. */
  function rejectAll(pending: PendingRequest[], error: unknown): void {
    for (const one of pending) {
      cache.forget(one.request.namespace_id);
      one.reject(error);
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
  pending: PendingRequest[];
  /** Finishes the round for it. Returns the requests to decide again. */
  finish(): Promise<PendingRequest[]>;
}

/** Decides a round: plans it, and answers its requests with seats and errors. */
async function decide(
  dependencies: CommitDependencies & { cache: Pick<LobbyCache, 'read'> },
  pending: PendingRequest[],
): Promise<Decision> {
  for (const { draft } of pending) draft.recordRound();
  const round = await planRound(dependencies.cache, pending);
  const { not_placed, locked } = await commitSeats(dependencies, round);
  const locked_ids = new Set(locked.map(({ namespace_id }) => namespace_id));
  const slow = new Map([...locked, ...round.new_lobbies].map(({ namespace_id, game_id }) => [namespace_id, game_id]));
  const unfinished = [...slow].map(([namespace_id, game_id]) => {
    const part = partOf(round, (other) => other === namespace_id);
    const finish = async () => {
      const not_placed_in_running = locked_ids.has(namespace_id) ? await commitLockedSeats(dependencies, part) : [];
      const not_placed_in_new = await commitLobbies(dependencies, part);
      return refuse(part, [...not_placed, ...not_placed_in_running, ...not_placed_in_new]);
    };
    return { namespace_id, game_id, pending: part.pending, finish };
  });
  const finished = partOf(round, (namespace_id) => !slow.has(namespace_id));
  return { to_decide_again: refuse(finished, not_placed), unfinished };
}

/** Answers the requests that the plan refuses, unless they are retryable. Returns those without an answer. */
function refuse({ pending, refusals, planned_first, by_player }: PlannedRound, not_placed: NotPlaced[]) {
  const requests = pending.map(({ request }) => request);
  const isRetryable = retryableAfter({ requests, planned_first, not_placed });
  for (const { request, code } of refusals) {
    if (!isRetryable(request)) by_player.get(request.player_id)?.reject(toRefusal(code));
  }
  return pending.filter(({ is_answered }) => !is_answered);
}
