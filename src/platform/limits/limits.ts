import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import type { Events } from '../events.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { createCounters, type Verdict } from './counters.ts';
import { inEachMinute, type Limit } from './limit.ts';
import { createSharedCounters } from './shared-counters.ts';
import type { StoreSettings } from './store-settings.ts';

export interface LimitsOptions {
  clock: Clock;
  events: Events;
  is_on: boolean;
  /** Multiplies every limit. */
  scale: number;
  /** The store that processes share; undefined if each process counts for itself. */
  store: StoreSettings | undefined;
  /** Identifies the database. All processes on it count together. */
  epoch: string;
  /** A store that takes longer to answer counts as lost. */
  answer_within_ms?: number;
}

/** Counts requests against limits (docs/decisions/0018). */
export interface Limits extends Disposable {
  /**
   * Counts one more request under a key. Returns undefined if limits are off, and no promise if this process counts for
   * itself. Throws LIMITS_UNAVAILABLE if the store is unavailable and the limit refuses requests then.
   */
  count(limit: Limit, caller_key: string): MaybePromise<Verdict> | undefined;
}

const ANSWER_WITHIN_MS = 300;

/** A limit that is counted once at the start, so that an unusable store is reported before the first request. */
const START = inEachMinute('start', 1_000_000);

/** Opens the limits. A store that does not answer is reported, and does not prevent the start. */
export async function openLimits(options: LimitsOptions): Promise<Limits> {
  const { clock, events, is_on, scale, store, epoch, answer_within_ms = ANSWER_WITHIN_MS } = options;
  const here = createCounters(() => clock.now().getTime());
  const shared =
    store && is_on
      ? createSharedCounters({
          store,
          epoch,
          answer_within_ms,
          onLost: (cause) => events.emit({ event: 'limits_store_lost', store: store.kind, cause }),
          onFound: () => events.emit({ event: 'limits_store_found', store: store.kind }),
        })
      : undefined;
  await shared?.count(START, 'process');
  const scaled = new Map<Limit, Limit>();

  function toScale(limit: Limit): Limit {
    const known = scaled.get(limit);
    if (known) return known;
    const wanted = { ...limit, requests: limit.requests * scale };
    scaled.set(limit, wanted);
    return wanted;
  }

  async function countTogether(limit: Limit, caller_key: string): Promise<Verdict> {
    const verdict = await shared?.count(limit, caller_key);
    if (verdict) return verdict;
    if (limit.when_store_is_lost === 'refuse') throw new ServiceError('LIMITS_UNAVAILABLE', {});
    return here.count(limit, caller_key);
  }

  return {
    count(unscaled, caller_key) {
      if (!is_on) return undefined;
      const limit = toScale(unscaled);
      return shared && limit.counted === 'everywhere'
        ? countTogether(limit, caller_key)
        : here.count(limit, caller_key);
    },
    [Symbol.dispose]: () => shared?.[Symbol.dispose](),
  };
}

/** Throws API_RATE_LIMIT for a caller over its limit; its metadata says when the window ends, in Unix milliseconds. */
export function assertWithin({ is_within, limit, reset_at, reset_in_ms }: Verdict): void {
  if (is_within) return;
  // At least 1, because Retry-After: 0 would ask for no pause.
  const retry_after_ms = Math.max(1, reset_in_ms);
  const retry_after_s = Math.ceil(retry_after_ms / 1_000);
  throw new ServiceError(
    'API_RATE_LIMIT',
    { limit, retry_after_s },
    { metadata: { reset_ts: reset_at, limit }, retry_after_ms },
  );
}
