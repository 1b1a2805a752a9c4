import {
  BrokenCircuitError,
  BulkheadRejectedError,
  bulkhead,
  type CircuitBreakerPolicy,
  circuitBreaker,
  handleWhen,
  type IPolicy,
  SamplingBreaker,
  wrap,
} from 'cockatiel';
import { LRUCache } from 'lru-cache';
import { type FailureKind, OutboundFailure } from './failure.ts';

/** How many requests may be under way at one time; four times as many may wait for their turn. */
export interface LaneLimits {
  in_all: number;
  /** Of one account, whatever its targets. */
  of_account: number;
  /** To one target of one account. */
  to_target: number;
  /** How long a target that fails is left alone. */
  rest_ms: number;
}

const LIMITS: LaneLimits = { in_all: 256, of_account: 64, to_target: 32, rest_ms: 5_000 };
const WAITING_FACTOR = 4;
const REMEMBERED_MAX = 4_096;
/** A target rests when more than half of at least eight requests within 10 s failed; then one request tries it. */
const BREAKER = { threshold: 0.5, duration: 10_000, minimumRps: 0.8 };
/** What a target is to blame for. */
const BLAMED: readonly FailureKind[] = ['unreachable', 'broken_answer', 'timeout'];

/** Whose request it is, and where it goes. */
export interface Lane {
  account: string;
  /** Origin of the target's URL. */
  origin: string;
}

/**
 * Lets only so many requests through at one time, so that a slow target keeps neither other targets, nor other accounts,
 * from theirs; and leaves a target alone that fails. A target is one for each account: nobody can make it rest for others.
 */
export function createLanes(limits: LaneLimits = LIMITS, onRest: (lane: Lane) => void = () => {}) {
  const openLane = (width: number) => bulkhead(width, width * WAITING_FACTOR);
  const in_all = openLane(limits.in_all);
  const accounts = new LRUCache<string, IPolicy>({ max: REMEMBERED_MAX });
  const targets = new LRUCache<string, IPolicy>({ max: REMEMBERED_MAX });

  function getOrOpen(lanes: LRUCache<string, IPolicy>, name: string, open: () => IPolicy): IPolicy {
    const lane = lanes.get(name) ?? open();
    lanes.set(name, lane);
    return lane;
  }

  function openTarget(lane: Lane): IPolicy {
    const breaker = openBreaker(limits.rest_ms);
    breaker.onBreak(() => onRest(lane));
    return wrap(breaker, openLane(limits.to_target));
  }

  /** Runs the work when it is its turn. Throws OutboundFailure `too_busy`, `resting`, and what the work throws. */
  return async function pass<Result>(lane: Lane, work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    const { account, origin } = lane;
    const target = getOrOpen(targets, `${account} ${origin}`, () => openTarget(lane));
    const own = getOrOpen(accounts, account, () => openLane(limits.of_account));
    try {
      return await wrap(target, own, in_all).execute(work, signal);
    } catch (error) {
      if (error instanceof BulkheadRejectedError) throw new OutboundFailure('too_busy', 'too many wait', error);
      if (error instanceof BrokenCircuitError) throw new OutboundFailure('resting', 'it failed too often', error);
      throw error;
    }
  };
}

function openBreaker(rest_ms: number): CircuitBreakerPolicy {
  return circuitBreaker(
    handleWhen((error) => error instanceof OutboundFailure && BLAMED.includes(error.kind)),
    { halfOpenAfter: rest_ms, breaker: new SamplingBreaker(BREAKER) },
  );
}
