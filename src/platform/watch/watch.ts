import type { Queries } from '../database/database.ts';
import { ServiceError } from '../errors.ts';
import { Alarm, Alarms } from './alarms.ts';
import { type Channels, createChannels } from './channels.ts';
import { type Feed, subscribeAll } from './feed.ts';
import { nameOf, Places, type Waiter } from './places.ts';
import { readEpoch } from './versions.ts';
import type { View } from './views.ts';

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
  waiter: Waiter;
}

/** Whether somebody still may see what he waits for. */
export interface Admission {
  /** Where news of it appears. */
  topics: readonly string[];
  /** Throws when he may not. */
  check(): Promise<void>;
}

export interface Watch {
  channels: Channels;
  /** Where an index stands. One of another database, or none of ours, has seen nothing: undefined. */
  readIndex: Channels['readIndex'];
  /**
   * The body of now, as JSON; or, with the number of an earlier answer (`readIndex`), the body after the next change; after
   * the hold time the body of now again, or of what grows nothing new.
   */
  answer(
    sight: View,
    waiting: Waiting & { number: number | undefined; admission?: Admission | undefined },
  ): Promise<string>;
  /** Looks, and looks again after each news of the topics, until something is seen; undefined when the time is over. */
  until<Seen>(
    topics: string | readonly string[],
    look: () => Promise<Seen | undefined>,
    waiting: Waiting & { timeout_ms: number },
  ): Promise<Seen | undefined>;
  /** A place among those who watch; gives the function that gives it back. Throws TOO_MANY_WATCHERS. */
  takePlace(waiter: Waiter): () => void;
  /** Answers all who hold a poll, now and from now on: the service stops. */
  release(): void;
  /** Hears of news of a topic. */
  subscribe: Feed['subscribe'];
}

export async function openWatch(queries: Queries, feed: Feed, limits: WatchLimits): Promise<Watch> {
  const { watch_hold_ms, watchers_max, watchers_per_caller_max } = limits;
  const channels = createChannels(queries, feed, await readEpoch(queries));
  const places = new Places(watchers_per_caller_max);
  let places_in_all = 0;

  const alarms = new Alarms(watch_hold_ms);

  /** Takes a place. Gives the name under which it is counted, to leave by. */
  function enter(waiter: Waiter): string | undefined {
    if (places_in_all >= watchers_max) throw tooMany();
    places_in_all += 1;
    // Until half of all places are taken nobody takes another's.
    if (typeof waiter === 'function' && places_in_all * 2 <= watchers_max) return undefined;
    const name = nameOf(waiter);
    if (places.take(name)) return name;
    places_in_all -= 1;
    throw tooMany();
  }

  function leave(name: string | undefined): void {
    places_in_all -= 1;
    if (name !== undefined) places.leave(name);
  }

  async function poll(
    sight: View,
    number: number,
    { signal, waiter, admission }: Waiting & { admission?: Admission | undefined },
  ): Promise<string> {
    const name = enter(waiter);
    const alarm = alarms.set(signal);
    const channel = channels.listen(sight, alarm);
    const doubt = admission && listenForDoubt(admission);
    try {
      for (;;) {
        const known = channel.peek(number);
        const shown = known === undefined ? await channel.since(number) : known;
        if (shown || alarm.is_over) {
          if (doubt?.isJustified()) await admission?.check();
          return (shown ?? (await channel.present(number))).text;
        }
        await alarm.next();
      }
    } finally {
      alarms.end(alarm);
      channels.leave(sight, alarm);
      doubt?.end();
      leave(name);
    }
  }

  /** News of what somebody's admission depends on, while he waits. */
  function listenForDoubt({ topics }: Admission) {
    let is_justified = false;
    const end = subscribeAll(feed, topics, () => {
      is_justified = true;
    });
    return { isJustified: () => is_justified, end };
  }

  return {
    channels,
    readIndex: channels.readIndex,
    takePlace(waiter) {
      const name = enter(waiter);
      return () => leave(name);
    },
    release: () => alarms.release(),
    subscribe: feed.subscribe,
    answer: (sight, { number, ...waiting }) =>
      number === undefined ? channels.present(sight).then(({ text }) => text) : poll(sight, number, waiting),
    async until(topics, look, { signal, waiter, timeout_ms }) {
      const name = enter(waiter);
      const alarm = new Alarm(signal, timeout_ms);
      const timer = setTimeout(() => alarm.finish(), timeout_ms);
      // Subscribed before the first look: what changes in between is heard.
      const unsubscribe = subscribeAll(feed, [topics].flat(), () => alarm.onNews());
      try {
        for (;;) {
          const seen = await look();
          if (seen !== undefined || alarm.is_over) return seen;
          await alarm.next();
        }
      } finally {
        clearTimeout(timer);
        alarm.end();
        unsubscribe();
        leave(name);
      }
    },
  };
}

function tooMany(): ServiceError {
  return new ServiceError('TOO_MANY_WATCHERS', {}, { retry_after_ms: RETRY_AFTER_MS });
}
