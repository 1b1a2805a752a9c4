import type { Queries } from '../database/database.ts';
import { ServiceError } from '../errors.ts';
import { Alarm, Alarms } from './alarms.ts';
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

/**
 * Who waits, for the limit on each. Where it costs something to find out, a function: it is asked only when more than half
 * of all places are taken, because until then nobody takes another's.
 */
export type Waiter = string | (() => string);

interface Waiting {
  /** Ends the wait: the client has gone, or the service stops. */
  signal: AbortSignal;
  waiter: Waiter;
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
  takePlace(waiter: Waiter): () => void;
  /** Answers all who hold a poll, now and from now on: the service stops. */
  release(): void;
  /** Hears of news of a topic. */
  subscribe: Feed['subscribe'];
}

export async function openWatch(queries: Queries, feed: Feed, limits: WatchLimits): Promise<Watch> {
  const { watch_hold_ms, watchers_max, watchers_per_caller_max } = limits;
  const channels = createChannels(queries, feed, await readEpoch(queries));
  const places_by_caller = new Map<string, number>();
  let places_in_all = 0;

  const alarms = new Alarms(watch_hold_ms);

  /** Takes a place. Gives the name under which it is counted, to leave by. */
  function enter(waiter: Waiter): string | undefined {
    if (places_in_all >= watchers_max) throw tooMany();
    places_in_all += 1;
    if (typeof waiter === 'function' && places_in_all * 2 <= watchers_max) return undefined;
    const name = typeof waiter === 'function' ? waiter() : waiter;
    const places = places_by_caller.get(name) ?? 0;
    if (places >= watchers_per_caller_max) {
      places_in_all -= 1;
      throw tooMany();
    }
    places_by_caller.set(name, places + 1);
    return name;
  }

  function leave(name: string | undefined): void {
    places_in_all -= 1;
    if (name === undefined) return;
    const left = (places_by_caller.get(name) ?? 1) - 1;
    if (left === 0) places_by_caller.delete(name);
    else places_by_caller.set(name, left);
  }

  async function poll(
    sight: Sight,
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
          if (doubt?.is_justified) await admission?.check();
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
  function listenForDoubt({ topic }: Admission) {
    const doubt = { is_justified: false, end: () => {} };
    doubt.end = feed.subscribe(topic, () => {
      doubt.is_justified = true;
    });
    return doubt;
  }

  return {
    channels,
    takePlace(waiter) {
      const name = enter(waiter);
      return () => leave(name);
    },
    release: () => alarms.release(),
    subscribe: feed.subscribe,
    async answer(sight, { watch_index, ...waiting }) {
      const number = channels.readIndex(watch_index);
      return number === undefined ? (await channels.present(sight)).text : await poll(sight, number, waiting);
    },
    async until(topic, look, { signal, waiter, timeout_ms }) {
      const name = enter(waiter);
      const alarm = new Alarm(signal, timeout_ms);
      const timer = setTimeout(() => alarm.finish(), timeout_ms);
      // Subscribed before the first look: what changes in between is heard.
      const unsubscribe = feed.subscribe(topic, () => alarm.onNews());
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
