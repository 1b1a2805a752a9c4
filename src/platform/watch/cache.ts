import { LRUCache } from 'lru-cache';
import type { Soon } from '../soon.ts';
import type { Feed } from './feed.ts';

interface CacheOptions<Key extends string, Value> {
  feed: Feed;
  /** Where news of an entry appears: it is forgotten then. */
  topic(key: Key): string;
  load(key: Key): Promise<Value>;
  entries_max: number;
}

/**
 * Remembers what seldom changes for as long as nobody tells of a change. Lookups that come while an entry is loaded share
 * it; what failed to load is not remembered.
 */
export function createWatchedCache<Key extends string, Value>(options: CacheOptions<Key, Value>) {
  const { feed, topic, load, entries_max } = options;
  const entries = new LRUCache<Key, Entry<Value>>({
    max: entries_max,
    dispose: (entry) => entry.unsubscribe(),
  });

  /** Subscribed before it is read: a change in between makes it forgotten. */
  function open(key: Key): Entry<Value> {
    const entry: Entry<Value> = { known: undefined, unsubscribe: feed.subscribe(topic(key), () => forget(key)) };
    entries.set(key, entry);
    return entry;
  }

  /** Goes on listening: the feed knows what was heard last for as long as somebody does. */
  function forget(key: Key): void {
    const entry = entries.peek(key);
    if (entry) entry.known = undefined;
  }

  return {
    get(key: Key): Soon<Value> {
      const entry = entries.get(key) ?? open(key);
      const { known } = entry;
      if (known) return known instanceof Promise ? known : known.value;
      const loading = load(key);
      entry.known = loading;
      // Not in place of one that was loaded since.
      const isLatest = () => entries.peek(key)?.known === loading;
      loading.then(
        (value) => {
          if (isLatest()) entry.known = { value };
        },
        () => {
          if (isLatest()) entries.delete(key);
        },
      );
      return loading;
    },
    /** After a change of our own: whoever asked for it must find it, and news of it may come later than he does. */
    forget,
  };
}

interface Entry<Value> {
  /** What is there, or is being loaded; undefined when it has been forgotten. */
  known: { value: Value } | Promise<Value> | undefined;
  unsubscribe(): void;
}
