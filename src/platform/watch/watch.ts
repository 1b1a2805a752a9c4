import type { Queries } from '../database/database.ts';
import { ServiceError } from '../errors.ts';
import { type Channels, createChannels } from './channels.ts';
import type { Feed } from './feed.ts';
import type { Sight } from './sights.ts';
import { readEpoch } from './versions.ts';

const RETRY_AFTER_MS = 1_000;

export interface WatchLimits {
  /** How long a poll waits for a change. */
  watch_hold_ms: number;
  /** How many may wait at one time: polls, and subscriptions of sockets. */
  watchers_max: number;
  watchers_per_caller_max: number;
}

interface Waiting {
  /** Ends the wait: the client has gone, or the service stops. */
  signal: AbortSignal;
  /** Who waits, for the limit on each. */
  waiter: string;
}

/** Whether somebody still may see what he waits for. */
export interface Admission {
  /** Where news of it appears. */
  topic: string;
  /** Throws when he may not. */
  check(): Promise<void>;
}

export interface Watch {
  channels: Channels;
  /**
   * The body of now, as JSON; or, with the index of an earlier answer, the body after the next change; after the hold time
   * the body of now again, or of what grows nothing new. An index of another database, or none of ours, counts as never
   * seen.
   */
  answer(
    sight: Sight,
    waiting: Waiting & { watch_index: string | undefined; admission?: Admission | undefined },
  ): Promise<string>;
  /** Looks, and looks again after each news of the topic, until something is seen; undefined when the time is over. */
  until<Seen>(
    topic: string,
    look: () => Promise<Seen | undefined>,
    waiting: Waiting & { timeout_ms: number },
  ): Promise<Seen | undefined>;
  /** A place among those who watch; gives the function that gives it back. Throws TOO_MANY_WATCHERS. */
  takePlace(waiter: string): () => void;
  /** Hears of news of a topic. */
  subscribe: Feed['subscribe'];
}

export async function openWatch(queries: Queries, feed: Feed, limits: WatchLimits): Promise<Watch> {
  const { watch_hold_ms, watchers_max, watchers_per_caller_max } = limits;
  const channels = createChannels(queries, feed, await readEpoch(queries));
  const places_by_caller = new Map<string, number>();
  let places_in_all = 0;

  function takePlace(waiter: string): () => void {
    const places = places_by_caller.get(waiter) ?? 0;
    if (places >= watchers_per_caller_max || places_in_all >= watchers_max) {
      throw new ServiceError('TOO_MANY_WATCHERS', {}, { retry_after_ms: RETRY_AFTER_MS });
    }
    places_by_caller.set(waiter, places + 1);
    places_in_all += 1;
    return () => {
      places_in_all -= 1;
      const left = (places_by_caller.get(waiter) ?? 1) - 1;
      if (left === 0) places_by_caller.delete(waiter);
      else places_by_caller.set(waiter, left);
    };
  }

  async function poll(
    sight: Sight,
    number: number,
    { signal, waiter, admission }: Waiting & { admission?: Admission | undefined },
  ): Promise<string> {
    const leave = takePlace(waiter);
    const alarm = setAlarm(watch_hold_ms, signal);
    const channel = channels.listen(sight, alarm.ring);
    let is_doubtful = false;
    const unsubscribe =
      admission &&
      feed.subscribe(admission.topic, () => {
        is_doubtful = true;
      });
    try {
      for (;;) {
        const shown = await channel.since(number);
        if (shown || alarm.isOver()) {
          if (is_doubtful) await admission?.check();
          return (shown ?? (await channel.present(number))).text;
        }
        await alarm.next();
      }
    } finally {
      alarm.end();
      channel.stop();
      unsubscribe?.();
      leave();
    }
  }

  return {
    channels,
    takePlace,
    subscribe: feed.subscribe,
    async answer(sight, { watch_index, ...waiting }) {
      const number = channels.readIndex(watch_index);
      return number === undefined ? (await channels.present(sight)).text : await poll(sight, number, waiting);
    },
    async until(topic, look, { signal, waiter, timeout_ms }) {
      const leave = takePlace(waiter);
      const alarm = setAlarm(timeout_ms, signal);
      // Subscribed before the first look: what changes in between is heard.
      const unsubscribe = feed.subscribe(topic, alarm.ring);
      try {
        for (;;) {
          const seen = await look();
          if (seen !== undefined || alarm.isOver()) return seen;
          await alarm.next();
        }
      } finally {
        alarm.end();
        unsubscribe();
        leave();
      }
    },
  };
}

/** Something to wait for: it rings when it is told to, and is over at its time or by the signal. */
function setAlarm(timeout_ms: number, signal: AbortSignal) {
  let has_rung = false;
  let is_over = signal.aborted;
  let wake = () => {};
  const ring = () => {
    has_rung = true;
    wake();
  };
  const finish = () => {
    is_over = true;
    wake();
  };
  const timer = setTimeout(finish, timeout_ms);
  signal.addEventListener('abort', finish, { once: true });
  return {
    ring,
    isOver: () => is_over,
    /** Until it rings, or has rung since the last time. */
    async next(): Promise<void> {
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (has_rung || is_over) resolve();
      });
      has_rung = false;
    },
    end() {
      clearTimeout(timer);
      signal.removeEventListener('abort', finish);
    },
  };
}
