import {
  BrokenCircuitError,
  BulkheadRejectedError,
  bulkhead,
  type CircuitBreakerPolicy,
  CircuitState,
  circuitBreaker,
  handleWhen,
  type IPolicy,
  SamplingBreaker,
  wrap,
} from 'cockatiel';
import { LRUCache } from 'lru-cache';
import { SlotQueue } from '../limits/slot-queue.ts';
import { type FailureKind, OutboundFailure } from './failure.ts';

/** Limits of concurrent requests, four times as many of which may wait for their turn, and when a target gets none. */
export interface BulkheadLimits {
  /** Accounts share them by the rule of `Slots`. */
  in_all: number;
  /** For one account, whatever its targets. */
  of_account: number;
  /** For one target of one account. */
  to_target: number;
  /** How long a failing target gets no requests. */
  break_ms: number;
  /** A target that has not answered for this long when a caller disconnects has failed. */
  slow_ms: number;
}

const LIMITS: BulkheadLimits = { in_all: 256, of_account: 64, to_target: 32, break_ms: 5_000, slow_ms: 2_000 };
const WAITING_FACTOR = 4;
const REMEMBERED_MAX = 4_096;
/** Breaks if more than half of at least eight requests within 10 s failed. After `break_ms`, one request tries again. */
const BREAKER = { threshold: 0.5, duration: 10_000, minimumRps: 0.8 };
/** The failures that are the target's fault. */
const BLAMED: readonly FailureKind[] = ['unreachable', 'broken_answer', 'timeout'];

/** The account that sends a request, such as a game, and the target that it is sent to. */
export interface Destination {
  account: string;
  /** Origin of the target's URL. */
  origin: string;
}

/**
 * Returns a function that limits concurrent requests, so that a slow target does not delay other targets or accounts, and
 * sends none to a failing target for a while. Accounts do not share targets, so none can break a target for another.
 */
export function createBulkheads(
  limits: BulkheadLimits = LIMITS,
  onBreak: (destination: Destination) => void = () => {},
) {
  const openBulkhead = (width: number) => bulkhead(width, width * WAITING_FACTOR);
  const in_all = new SlotQueue({ at_once: limits.in_all, waiting_max: limits.in_all * WAITING_FACTOR });
  const accounts = new LRUCache<string, IPolicy>({ max: REMEMBERED_MAX });
  const targets = new LRUCache<string, IPolicy>({ max: REMEMBERED_MAX });

  function getOrOpen(policies: LRUCache<string, IPolicy>, name: string, open: () => IPolicy): IPolicy {
    const policy = policies.get(name) ?? open();
    policies.set(name, policy);
    return policy;
  }

  function openTarget(destination: Destination): IPolicy {
    const breaker = openBreaker(limits);
    breaker.onBreak(() => onBreak(destination));
    return wrap(breaker, openBulkhead(limits.to_target));
  }

  /** Runs the work when it is its turn. Throws OutboundFailure `too_busy` or `paused`, or an error of the work. */
  return async function pass<Result>(
    destination: Destination,
    work: () => Promise<Result>,
    signal: AbortSignal,
  ): Promise<Result> {
    const { account, origin } = destination;
    const target = getOrOpen(targets, `${account} ${origin}`, () => openTarget(destination));
    const of_account = getOrOpen(accounts, account, () => openBulkhead(limits.of_account));
    try {
      return await wrap(target, of_account).execute(() => in_all.run(account, work, signal), signal);
    } catch (error) {
      if (error instanceof BulkheadRejectedError)
        throw new OutboundFailure('too_busy', 'too many requests wait', { cause: error });
      if (error instanceof BrokenCircuitError)
        throw new OutboundFailure('paused', 'the target failed too often', { cause: error });
      throw error;
    }
  };
}

function openBreaker({ break_ms, slow_ms }: BulkheadLimits): CircuitBreakerPolicy {
  const breaker = circuitBreaker(
    // After a pause only an answer shows that the target is well. A caller that disconnects shows nothing.
    handleWhen((error) => breaker.state === CircuitState.HalfOpen || isBlamed(error, slow_ms)),
    { halfOpenAfter: break_ms, breaker: new SamplingBreaker(BREAKER) },
  );
  return breaker;
}

function isBlamed(error: unknown, slow_ms: number): boolean {
  if (!(error instanceof OutboundFailure)) return false;
  return BLAMED.includes(error.kind) || (error.kind === 'cancelled' && error.waited_ms > slow_ms);
}
