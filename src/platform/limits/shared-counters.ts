import { Ratelimit } from '@upstash/ratelimit';
import { Redis } from '@upstash/redis';
import { LRUCache } from 'lru-cache';
import type { Verdict } from './counters.ts';
import type { Limit } from './limit.ts';
import { openRedis } from './redis.ts';
import type { StoreSettings } from './store-settings.ts';

/** Time between attempts to reach a lost store. One request tries it, and the others do not wait. */
const ASK_AGAIN_AFTER_MS = 1_000;
/** Maximum number of keys over their limit that are remembered. */
const REFUSED_MAX = 100_000;

/** Counts requests of several processes together, in a store. */
export interface SharedCounters extends Disposable {
  /** Counts one more request under a key; undefined if the store is unavailable. */
  count(limit: Limit, caller_key: string): Promise<Verdict | undefined>;
}

export interface SharedCountersOptions {
  store: StoreSettings;
  /** Identifies the database whose processes count together, because a store may serve several databases. */
  epoch: string;
  /** A store that answers more slowly counts as lost, because players wait for its answer. */
  answer_within_ms: number;
  onLost(cause: unknown): void;
  onFound(): void;
}

/** Creates counters with the fixed windows of @upstash/ratelimit, in Redis, Valkey or Upstash. */
export function createSharedCounters(options: SharedCountersOptions): SharedCounters {
  const { store, epoch, answer_within_ms, onLost, onFound } = options;
  const { redis, renew, close } = openStore(store, answer_within_ms);
  const limiters = new Map<string, Ratelimit>();
  /** When the windows of keys over their limit end. Until then, the store is not asked about them. */
  const refused = new LRUCache<string, number>({ max: REFUSED_MAX });
  let ask_again_at: number | undefined;

  function limiterOf({ name, requests, window_ms }: Limit): Ratelimit {
    const known = limiters.get(name);
    if (known) return known;
    const limiter = new Ratelimit({
      redis,
      limiter: Ratelimit.fixedWindow(requests, `${window_ms} ms`),
      prefix: `muster:${epoch}:${name}`,
      timeout: answer_within_ms,
      analytics: false,
      enableTelemetry: false,
      // The library's cache never forgets, and refuses for a millisecond longer than the window.
      ephemeralCache: false,
    });
    limiters.set(name, limiter);
    return limiter;
  }

  /** Returns whether to ask the store: it is available, or it is time to try it again. */
  function mayAsk(): boolean {
    if (ask_again_at === undefined) return true;
    if (performance.now() < ask_again_at) return false;
    ask_again_at = performance.now() + ASK_AGAIN_AFTER_MS;
    return true;
  }

  function noteLost(cause: unknown): void {
    const was_there = ask_again_at === undefined;
    ask_again_at = performance.now() + ASK_AGAIN_AFTER_MS;
    renew();
    if (was_there) onLost(cause);
  }

  function noteFound(): void {
    if (ask_again_at === undefined) return;
    ask_again_at = undefined;
    onFound();
  }

  return {
    async count(limit, caller_key) {
      const key = `${limit.name} ${caller_key}`;
      const refused_until = refused.get(key) ?? 0;
      if (Date.now() < refused_until)
        return verdictOf(limit, { is_within: false, remaining: 0, reset_at: refused_until });
      if (!mayAsk()) return undefined;
      try {
        const { success, remaining, reset, reason } = await limiterOf(limit).limit(caller_key);
        // The library allows requests while the store is silent.
        if (reason === 'timeout') throw new Error(`the store has not answered within ${answer_within_ms} ms`);
        noteFound();
        if (!success) refused.set(key, reset);
        return verdictOf(limit, { is_within: success, remaining, reset_at: reset });
      } catch (cause) {
        noteLost(cause);
        return undefined;
      }
    },
    [Symbol.dispose]: close,
  };
}

/** Builds the verdict by the system's clock, as the library does. */
function verdictOf({ requests }: Limit, counted: Pick<Verdict, 'is_within' | 'remaining' | 'reset_at'>): Verdict {
  return { ...counted, limit: requests, reset_in_ms: Math.max(0, counted.reset_at - Date.now()) };
}

function openStore(store: StoreSettings, answer_within_ms: number): { redis: Redis; renew(): void; close(): void } {
  if (store.kind === 'redis') return openRedis(store.url);
  const { url, token } = store;
  const signal = () => AbortSignal.timeout(answer_within_ms);
  const redis = new Redis({ url, token, signal, retry: false, enableTelemetry: false });
  return { redis, renew() {}, close() {} };
}
