import type { Database } from '../database/database.ts';
import type { Events } from '../events.ts';
import { type Loop, startLoop } from '../loop.ts';
import { Registry } from '../registry.ts';
import { CHANGES_CHANNEL, readNotification } from './notifications.ts';
import { readVersions } from './versions.ts';

const RECHECK_EVERY_MS = 5_000;
const TOPICS_PER_QUERY_MAX = 1_000;

/**
 * Called when a topic has changed. The version may be lower than one that was passed before: notifications may be late, and
 * reads may be ahead of them.
 */
type OnChange = (version: number) => void;

/**
 * Notifies of topics that any process on the database has changed. A notification is a hint and has no data: it may be
 * repeated, late or lost.
 */
export interface Feed extends AsyncDisposable {
  /** Calls `onChange` at every change until the returned function is called. */
  subscribe(topic: string, onChange: OnChange): () => void;
  /**
   * Notifies subscribers of versions that the caller has read from the database, if they are new. So when the caller goes
   * on, no cache has content that is older than these versions.
   */
  observe(versions: ReadonlyMap<string, number>): void;
}

/** Subscribes to several topics; `onChange` gets the topic that changed. Returns the function that unsubscribes from all. */
export function subscribeAll(
  { subscribe }: Pick<Feed, 'subscribe'>,
  topics: readonly string[],
  onChange: (version: number, topic: string) => void,
): () => void {
  const unsubscribers = topics.map((topic) => subscribe(topic, (version) => onChange(version, topic)));
  return () => {
    for (const unsubscribe of unsubscribers) unsubscribe();
  };
}

/** Wakes a loop after each change of the topics, until the signal is aborted. */
export function wakeOnChange(
  { wake }: Pick<Loop, 'wake'>,
  { feed, topics, signal }: { feed: Pick<Feed, 'subscribe'>; topics: readonly string[]; signal: AbortSignal },
): void {
  signal.addEventListener('abort', subscribeAll(feed, topics, wake), { once: true });
}

interface Subscription {
  known_version: number | undefined;
  listeners: Registry<OnChange>;
}

/**
 * Opens the feed, which listens on one connection. It reads the versions of all subscribed topics after the connection was
 * lost, and every few seconds in case a notification was lost.
 */
export async function openFeed(database: Database, events: Events, recheck_every_ms = RECHECK_EVERY_MS): Promise<Feed> {
  const subscriptions = new Map<string, Subscription>();
  const closing = new AbortController();
  await using opened = new AsyncDisposableStack();
  let has_connected = false;

  function notify(topic: string, version: number): void {
    const subscription = subscriptions.get(topic);
    if (!subscription) return;
    subscription.known_version = version;
    for (const onChange of subscription.listeners.list()) onChange(version);
  }

  async function compareVersions(): Promise<number> {
    let missed = 0;
    const names = [...subscriptions.keys()];
    for (let first = 0; first < names.length; first += TOPICS_PER_QUERY_MAX) {
      const batch = names.slice(first, first + TOPICS_PER_QUERY_MAX);
      const known_before = new Map(batch.map((topic) => [topic, subscriptions.get(topic)?.known_version]));
      for (const [topic, version] of await readVersions(database.queries, batch)) {
        const known = subscriptions.get(topic)?.known_version;
        // A notification that came meanwhile may be newer than the version that was read.
        if (known === version || known !== known_before.get(topic)) continue;
        // Without a known version, the topic may have changed before it was subscribed, so no notification was lost.
        if (known !== undefined) missed += 1;
        notify(topic, version);
      }
    }
    return missed;
  }

  /**
   * Sends a query on the connection that listens: one that has died looks like one without notifications. Set once the feed
   * listens.
   */
  let checkConnection = async (): Promise<void> => {};
  let is_checking = false;

  async function checkOnce(): Promise<void> {
    if (is_checking) return;
    is_checking = true;
    try {
      await checkConnection();
    } catch {
      // The connection is replaced, and `onConnected` called.
    } finally {
      is_checking = false;
    }
  }

  async function recheckAll(): Promise<number> {
    // It may take as long as a statement. The versions are read meanwhile.
    void checkOnce();
    return await compareVersions();
  }

  const recheck = startLoop({
    name: 'feed',
    every_ms: recheck_every_ms,
    signal: closing.signal,
    events,
    step: recheckAll,
  });
  opened.defer(async () => {
    closing.abort();
    await recheck.stopped;
  });

  checkConnection = await database.listen(
    CHANGES_CHANNEL,
    (payload) => {
      for (const { topic, version } of readNotification(payload)) notify(topic, version);
    },
    () => {
      if (has_connected) events.emit({ event: 'feed_reconnected' });
      has_connected = true;
      recheck.wake();
    },
  );

  const everything = opened.move();
  return {
    subscribe(topic, onChange) {
      const subscription = subscriptions.get(topic) ?? { known_version: undefined, listeners: new Registry() };
      subscriptions.set(topic, subscription);
      const slot = subscription.listeners.add(onChange);
      return () => {
        subscription.listeners.remove(slot);
        if (subscription.listeners.size === 0 && subscriptions.get(topic) === subscription) subscriptions.delete(topic);
      };
    },
    observe(versions) {
      for (const [topic, version] of versions) {
        const known = subscriptions.get(topic)?.known_version;
        if (known === undefined || version > known) notify(topic, version);
      }
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}
