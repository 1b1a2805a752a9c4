import type { Database } from '../database/database.ts';
import type { Events } from '../events.ts';
import { startLoop } from '../loop.ts';
import { CHANGES_CHANNEL, readVersions } from './versions.ts';

const RECHECK_EVERY_MS = 5_000;
const TOPICS_PER_QUERY_MAX = 1_000;

/** Called with news of a topic; the version is a hint and may be missing. */
type OnChange = (version: number | undefined) => void;

/** News of changed topics, from all processes on the database. A hint, never data: it may come twice, late or not at all. */
export interface Feed extends AsyncDisposable {
  /** Calls `onNews` at every news until the returned function is called. */
  subscribe(topic: string, onNews: OnChange): () => void;
  /**
   * Takes versions that were read from the database as news, where they have not been heard yet: whoever goes on with them
   * finds nothing remembered from before.
   */
  observe(versions: ReadonlyMap<string, number>): void;
}

/** Subscribes to several topics; the news says of which. Gives the function that ends it for all. */
export function subscribeAll(
  { subscribe }: Pick<Feed, 'subscribe'>,
  topics: readonly string[],
  onNews: (version: number | undefined, topic: string) => void,
): () => void {
  const ends = topics.map((topic) => subscribe(topic, (version) => onNews(version, topic)));
  return () => {
    for (const end of ends) end();
  };
}

interface Subscription {
  known_version: number | undefined;
  listeners: Set<OnChange>;
}

/**
 * Listens on one connection. When it was lost, and every so often for notifications that never came, the versions of all
 * topics that somebody waits for are compared with what was heard.
 */
export async function openFeed(database: Database, events: Events, recheck_every_ms = RECHECK_EVERY_MS): Promise<Feed> {
  const subscriptions = new Map<string, Subscription>();
  const closing = new AbortController();
  let has_connected = false;

  function spread(topic: string, version: number | undefined): void {
    const subscription = subscriptions.get(topic);
    if (!subscription) return;
    subscription.known_version = version;
    for (const onNews of [...subscription.listeners]) onNews(version);
  }

  async function compareVersions(): Promise<number> {
    let missed = 0;
    const names = [...subscriptions.keys()];
    for (let first = 0; first < names.length; first += TOPICS_PER_QUERY_MAX) {
      const batch = names.slice(first, first + TOPICS_PER_QUERY_MAX);
      for (const [topic, version] of await readVersions(database.queries, batch)) {
        const known = subscriptions.get(topic)?.known_version;
        if (known === version) continue;
        // One that was never heard of may have changed just before its watcher came: tell it, but do not count it.
        if (known !== undefined) missed += 1;
        spread(topic, version);
      }
    }
    return missed;
  }

  const recheck = startLoop({
    name: 'feed',
    every_ms: recheck_every_ms,
    signal: closing.signal,
    events,
    step: compareVersions,
  });

  await database.listen(
    CHANGES_CHANNEL,
    (payload) => {
      const blank = payload.indexOf(' ');
      spread(payload.slice(blank + 1), Number(payload.slice(0, blank)));
    },
    () => {
      if (has_connected) events.emit({ event: 'feed_reconnected' });
      has_connected = true;
      recheck.wake();
    },
  );

  return {
    subscribe(topic, onNews) {
      const subscription = subscriptions.get(topic) ?? { known_version: undefined, listeners: new Set() };
      subscriptions.set(topic, subscription);
      subscription.listeners.add(onNews);
      return () => {
        subscription.listeners.delete(onNews);
        if (subscription.listeners.size === 0 && subscriptions.get(topic) === subscription) subscriptions.delete(topic);
      };
    },
    observe(versions) {
      for (const [topic, version] of versions) {
        const known = subscriptions.get(topic)?.known_version;
        if (known === undefined || version > known) spread(topic, version);
      }
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await recheck.stopped;
    },
  };
}
