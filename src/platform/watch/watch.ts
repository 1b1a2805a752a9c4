import type { Queries } from '../database/database.ts';
import { ServiceError } from '../errors.ts';
import type { Feed } from './feed.ts';
import { createSharedReads, type SharedReads } from './shared-reads.ts';
import { readEpoch, readVersions } from './versions.ts';

const WAITERS_MAX = 20_000;
const WAITERS_PER_CALLER_MAX = 64;
const RETRY_AFTER_MS = 1_000;

/**
 * Something whose changes can be waited for: where news of it appears, and what it looks like now. Whoever asks with the
 * same key, as JSON, sees the same view: who asks belongs into the key when it makes a difference.
 */
export interface Watchable<Key, View> {
  topic(key: Key): string;
  read(key: Key): Promise<View>;
}

/** Something that only grows, by numbered pieces. */
export interface Growing<Key, View> {
  topic(key: Key): string;
  /** Its end, as much as fits into an answer, and the number of the piece that comes next. */
  last(key: Key): Promise<{ view: View; next: number }>;
  /** From a number on, as much as fits into an answer; `next` is that number itself when nothing is there yet. */
  from(key: Key, number: number): Promise<{ view: View; next: number }>;
}

/** A view with the index to come back with. */
export interface Watched<View> {
  view: View;
  watch: { index: string };
}

interface Waiting {
  /** Ends the wait: the client has gone, or the service stops. */
  signal: AbortSignal;
  /** Who waits, for the limit on each. */
  waiter: string;
}

export interface Watch {
  /**
   * The view of now, or, with the index of an earlier answer, the view after the next change; after the hold time the
   * view of now again. An index of another database, or none of ours, counts as never seen.
   */
  answer<Key, View>(
    watchable: Watchable<Key, View>,
    key: Key,
    waiting: Waiting & { watch_index: string | undefined },
  ): Promise<Watched<View>>;
  /** The same for what grows: its end, or what came after an earlier answer. Nothing is left out, nothing comes twice. */
  follow<Key, View>(
    growing: Growing<Key, View>,
    key: Key,
    waiting: Waiting & { watch_index: string | undefined },
  ): Promise<Watched<View>>;
  /** Looks, and looks again after each news of the topic, until something is seen; undefined when the time is over. */
  until<Seen>(
    topic: string,
    look: () => Promise<Seen | undefined>,
    waiting: Waiting & { timeout_ms: number },
  ): Promise<Seen | undefined>;
}

export async function openWatch(queries: Queries, feed: Feed, hold_ms: number): Promise<Watch> {
  const epoch = await readEpoch(queries);
  const waiting_by_caller = new Map<string, number>();
  let waiting_in_all = 0;
  const shareIndex = createSharedReads<string>();
  const shared_views = new WeakMap<object, SharedReads<unknown>>();

  const readIndex = (topic: string): Promise<string> =>
    shareIndex(topic, async () => {
      const versions = await readVersions(queries, [topic]);
      return `${epoch}.${versions.get(topic)}`;
    });

  async function readView<Key, View>(watchable: Watchable<Key, View>, key: Key): Promise<View> {
    const shareView = shared_views.get(watchable) ?? createSharedReads<unknown>();
    shared_views.set(watchable, shareView);
    // What is shared under a watchable are views of its own.
    return (await shareView(JSON.stringify(key), () => watchable.read(key))) as View;
  }

  /** The number in an index of this database; NaN for any other text. */
  function readNumber(index: string | undefined): number {
    const [life, number = '', ...more] = index?.split('.') ?? [];
    return life === epoch && more.length === 0 && /^\d{1,15}$/.test(number) ? Number(number) : Number.NaN;
  }

  /** One place among the waiters; gives the function that gives it back. */
  function takePlace(waiter: string): () => void {
    const places = waiting_by_caller.get(waiter) ?? 0;
    if (places >= WAITERS_PER_CALLER_MAX || waiting_in_all >= WAITERS_MAX) {
      throw new ServiceError('TOO_MANY_WATCHERS', {}, { retry_after_ms: RETRY_AFTER_MS });
    }
    waiting_by_caller.set(waiter, places + 1);
    waiting_in_all += 1;
    return () => {
      waiting_in_all -= 1;
      const left = (waiting_by_caller.get(waiter) ?? 1) - 1;
      if (left === 0) waiting_by_caller.delete(waiter);
      else waiting_by_caller.set(waiter, left);
    };
  }

  async function until<Seen>(
    topic: string,
    look: () => Promise<Seen | undefined>,
    { signal, waiter, timeout_ms }: Waiting & { timeout_ms: number },
  ): Promise<Seen | undefined> {
    const leave = takePlace(waiter);
    const deadline = performance.now() + timeout_ms;
    let news = Promise.withResolvers<void>();
    // Subscribed before the first look: what changes in between is heard.
    const unsubscribe = feed.subscribe(topic, () => news.resolve());
    try {
      for (;;) {
        const seen = await look();
        const left_ms = deadline - performance.now();
        if (seen !== undefined || signal.aborted || left_ms <= 0) return seen;
        await waitFor(news.promise, left_ms, signal);
        news = Promise.withResolvers();
      }
    } finally {
      unsubscribe();
      leave();
    }
  }

  return {
    until,
    async answer(watchable, key, { watch_index, ...waiting }) {
      const topic = watchable.topic(key);
      const hasChanged = async () => ((await readIndex(topic)) === watch_index ? undefined : true);
      if (watch_index?.startsWith(`${epoch}.`)) await until(topic, hasChanged, { ...waiting, timeout_ms: hold_ms });
      // The index before the view: a view newer than its index costs one poll, the reverse would hide a change.
      const index = await readIndex(topic);
      return { view: await readView(watchable, key), watch: { index } };
    },
    async follow(growing, key, { watch_index, ...waiting }) {
      const number = readNumber(watch_index);
      const after = async () => {
        const found = await growing.from(key, number);
        return found.next === number ? undefined : found;
      };
      const { view, next } = Number.isNaN(number)
        ? await growing.last(key)
        : ((await until(growing.topic(key), after, { ...waiting, timeout_ms: hold_ms })) ??
          (await growing.from(key, number)));
      return { view, watch: { index: `${epoch}.${next}` } };
    },
  };
}

/** Waits for a promise, but not longer than this and not after the signal. */
async function waitFor(promise: Promise<void>, timeout_ms: number, signal: AbortSignal): Promise<void> {
  const { promise: end, resolve } = Promise.withResolvers<void>();
  const stop = () => resolve();
  const timer = setTimeout(stop, timeout_ms);
  signal.addEventListener('abort', stop, { once: true });
  await Promise.race([promise, end]);
  clearTimeout(timer);
  signal.removeEventListener('abort', stop);
}
