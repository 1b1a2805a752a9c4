import { LRUCache } from 'lru-cache';
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
  const entries = new LRUCache<Key, { value: Promise<Value>; unsubscribe(): void }>({
    max: entries_max,
    dispose: (entry) => entry.unsubscribe(),
  });
  return {
    get(key: Key): Promise<Value> {
      const known = entries.get(key);
      if (known) return known.value;
      // Subscribed before it is read: a change in between makes it forgotten.
      const unsubscribe = feed.subscribe(topic(key), () => entries.delete(key));
      const value = load(key);
      entries.set(key, { value, unsubscribe });
      value.catch(() => {
        // Not one that was loaded since.
        if (entries.peek(key)?.value === value) entries.delete(key);
      });
      return value;
    },
    /** After a change of our own: whoever asked for it must find it, and news of it may come later than he does. */
    forget(key: Key): void {
      entries.delete(key);
    },
  };
}
