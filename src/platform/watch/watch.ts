import type { Queries } from '../database/database.ts';
import { ServiceError } from '../errors.ts';
import { type CallerKey, CallerSlots, readCallerKey } from '../limits/caller-slots.ts';
import { type Channels, createChannels } from './channels.ts';
import { type Feed, subscribeAll } from './feed.ts';
import { readEpoch } from './versions.ts';
import type { View } from './views.ts';
import { Waiter, Waiters } from './waiters.ts';

const RETRY_AFTER_MS = 1_000;

export interface WatchLimits {
  /** How long a poll waits for a change. */
  watch_hold_ms: number;
  /**
   * Maximum number of slots for waiting polls and subscriptions. Calls of `until` take slots too, and are not refused
   * when all are taken.
   */
  watchers_max: number;
  watchers_per_caller_max: number;
}

interface WaitScope {
  /** Ends the wait when the client disconnects or the service stops. */
  signal: AbortSignal;
  caller_key: CallerKey;
}

/** Checks whether a caller may still see the view that it is watching. */
export interface Authorization {
  /** The topics of changes that may revoke the authorization. */
  topics: readonly string[];
  /** Throws if the authorization is revoked. */
  check(): Promise<void>;
}

export interface Watch {
  channels: Channels;
  /** Returns the number of an index; undefined for an index of another database, or any other text. */
  readIndex: Channels['readIndex'];
  /**
   * Returns the current body as JSON. With the number of an earlier answer (`readIndex`), waits for the next change. After
   * the hold time, returns the current body again, or no entries for a log.
   */
  answer(
    view: View,
    scope: WaitScope & { number: number | undefined; authorization?: Authorization | undefined },
  ): Promise<string>;
  /**
   * Calls `find` now and after each change of the topics, until it returns a value. Returns undefined after the timeout.
   * Takes a slot even if `watchers_max` are taken. Throws TOO_MANY_WATCHERS if the caller has too many.
   */
  until<Found>(
    topics: string | readonly string[],
    find: () => Promise<Found | undefined>,
    scope: WaitScope & { timeout_ms: number },
  ): Promise<Found | undefined>;
  /** Takes one of the caller's slots. Returns the function that frees it. Throws TOO_MANY_WATCHERS. */
  takeSlot(caller_key: CallerKey): () => void;
  /** Returns how many slots are taken, and how many of them by polls that wait for a change. */
  count(): { watchers: number; polls: number };
  /** Answers all polls at once, from now on. Called when the service stops. */
  release(): void;
  subscribe: Feed['subscribe'];
}

export async function openWatch(queries: Queries, feed: Feed, limits: WatchLimits): Promise<Watch> {
  const { watch_hold_ms, watchers_max, watchers_per_caller_max } = limits;
  const channels = createChannels(queries, feed, await readEpoch(queries));
  const slots = new CallerSlots(watchers_per_caller_max);
  let slots_taken = 0;
  let polls = 0;

  const waiters = new Waiters(watch_hold_ms);

  function takeSlot(caller_key: CallerKey, slots_max = watchers_max): () => void {
    if (slots_taken >= slots_max) throw tooMany();
    // A key that must be looked up costs time. It is not counted while at least half of all slots are free, because no
    // caller can use up the slots of the others then.
    const is_counted = typeof caller_key === 'string' || (slots_taken + 1) * 2 > watchers_max;
    const key = is_counted ? readCallerKey(caller_key) : undefined;
    if (key !== undefined && !slots.take(key)) throw tooMany();
    slots_taken += 1;
    return () => {
      slots_taken -= 1;
      if (key !== undefined) slots.free(key);
    };
  }

  async function poll(
    view: View,
    number: number,
    { signal, caller_key, authorization }: WaitScope & { authorization?: Authorization | undefined },
  ): Promise<string> {
    const freeSlot = takeSlot(caller_key);
    const { waiter, remove } = waiters.add(signal);
    const { channel, leave } = channels.listen(view, waiter);
    polls += 1;
    const authorized = authorization && watchAuthorization(authorization);
    try {
      // The request was authorized before this poll began to watch its authorization for changes, so it is checked
      // again.
      await authorization?.check();
      for (;;) {
        const changes = channel.since(number);
        const snapshot = changes instanceof Promise ? await changes : changes;
        if (snapshot || waiter.is_over) {
          if (authorized?.hasChanged()) await authorization?.check();
          return (snapshot ?? (await channel.present(number))).text;
        }
        await waiter.next();
      }
    } finally {
      polls -= 1;
      remove();
      leave();
      authorized?.unsubscribe();
      freeSlot();
    }
  }

  /** Watches for changes that may revoke an authorization. */
  function watchAuthorization({ topics }: Authorization) {
    let has_changed = false;
    const unsubscribe = subscribeAll(feed, topics, () => {
      has_changed = true;
    });
    return { hasChanged: () => has_changed, unsubscribe };
  }

  return {
    channels,
    readIndex: channels.readIndex,
    takeSlot,
    count: () => ({ watchers: slots_taken, polls }),
    release: () => waiters.release(),
    subscribe: feed.subscribe,
    answer: (view, { number, ...scope }) =>
      number === undefined ? channels.present(view).then(({ text }) => text) : poll(view, number, scope),
    async until(topics, find, { signal, caller_key, timeout_ms }) {
      // `watchers_max` does not apply: a find whose lobby is being created must not fail because others watch.
      const freeSlot = takeSlot(caller_key, Number.POSITIVE_INFINITY);
      const waiter = new Waiter(signal);
      const timer = setTimeout(() => waiter.finish(), timeout_ms);
      // Subscribes before the first call, so that no change in between is missed.
      const unsubscribe = subscribeAll(feed, [topics].flat(), () => waiter.onChange());
      try {
        for (;;) {
          const found = await find();
          if (found !== undefined || waiter.is_over) return found;
          await waiter.next();
        }
      } finally {
        clearTimeout(timer);
        waiter.dispose();
        unsubscribe();
        freeSlot();
      }
    },
  };
}

function tooMany(): ServiceError {
  return new ServiceError('TOO_MANY_WATCHERS', {}, { retry_after_ms: RETRY_AFTER_MS });
}
