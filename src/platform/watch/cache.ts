import { LRUCache } from 'lru-cache';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Feed } from './feed.ts';

interface CacheOptions<Key extends string, Value> {
  feed: Feed;
  /** Returns the topic whose changes invalidate an entry. */
  topic(key: Key): string;
  load(key: Key): Promise<Value>;
  entries_max: number;
}

interface Entry<Value> {
  /** The value, or its load while that runs; undefined when invalid. */
  known: { value: Value } | Promise<Value> | undefined;
  unsubscribe(): void;
}

/** Caches values until their topic changes. Lookups during a load share it, and failed loads are not cached. */
export function createWatchedCache<Key extends string, Value>(options: CacheOptions<Key, Value>) {
  const { feed, topic, load, entries_max } = options;
  const entries = new LRUCache<Key, Entry<Value>>({
    max: entries_max,
    dispose: (entry) => entry.unsubscribe(),
  });

  /** Subscribes before the first load, so that a change in between invalidates it. */
  function open(key: Key): Entry<Value> {
    const entry: Entry<Value> = { known: undefined, unsubscribe: feed.subscribe(topic(key), () => forget(key)) };
    entries.set(key, entry);
    return entry;
  }

  /** Invalidates an entry but keeps its subscription: the feed knows a topic's version only while it has subscribers. */
  function forget(key: Key): void {
    const entry = entries.peek(key);
    if (entry) entry.known = undefined;
  }

  function get(key: Key): MaybePromise<Value> {
    const entry = entries.get(key) ?? open(key);
    const { known } = entry;
    if (known) return known instanceof Promise ? known : known.value;
    const loading = load(key);
    entry.known = loading;
    // A load that was invalidated must not replace a later one.
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
  }

  return {
    get,
    /** Like `get`, but calls `count` first if the value has to be loaded, and throws what that throws. */
    async getCounted(key: Key, count: () => MaybePromise<void>): Promise<Value> {
      const known = entries.peek(key)?.known;
      if (!known || known instanceof Promise) await count();
      return await get(key);
    },
    /** Call it after changing a value: the same client may read it again before the feed notifies of the change. */
    forget,
  };
}
