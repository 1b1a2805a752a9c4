import { describe, expect, test } from 'bun:test';
import { createWatchedCache } from '../../src/platform/watch/cache.ts';
import type { Feed } from '../../src/platform/watch/feed.ts';
import { createSharedReads } from '../../src/platform/watch/shared-reads.ts';
import { rejectionOf } from '../support/refusal.ts';

describe('createSharedReads', () => {
  test('calls of one turn share a read, also a few promises later', async () => {
    let reads = 0;
    const share = createSharedReads<number>();
    const read = async () => {
      reads += 1;
      return reads;
    };
    const late = async () => {
      for (let times = 0; times < 20; times += 1) await Promise.resolve();
      return await share('one', read);
    };
    expect(await Promise.all([share('one', read), share('one', read), late()])).toEqual([1, 1, 1]);
  });

  test('a call does not join a read that has begun', async () => {
    let value = 'old';
    const begun = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    const share = createSharedReads<string>();
    const first = share('one', async () => {
      const seen = value;
      begun.resolve();
      await end.promise;
      return seen;
    });
    await begun.promise;
    value = 'new';
    const second = share('one', async () => value);
    expect(await second).toBe('new');
    end.resolve();
    expect(await first).toBe('old');
  });

  test('names do not share reads', async () => {
    const share = createSharedReads<string>();
    expect(await Promise.all(['a', 'b'].map((name) => share(name, async () => name)))).toEqual(['a', 'b']);
  });

  test('a failed read rejects all its calls, and the next call reads again', async () => {
    const share = createSharedReads<string>();
    const failing = () => Promise.reject(new Error('it fails'));
    const reads = [share('one', failing), share('one', failing)];
    for (const one of reads) expect((await rejectionOf(Error, one)).message).toBe('it fails');
    expect(await share('one', async () => 'read')).toBe('read');
  });
});

/** A feed whose changes a test announces, and which lists its subscriptions. */
function makeFeed(): { feed: Feed; notify(topic: string): void; subscribed(): string[] } {
  const listeners = new Map<() => void, string>();
  return {
    feed: {
      subscribe(topic, onChange) {
        const listener = () => onChange(1);
        listeners.set(listener, topic);
        return () => void listeners.delete(listener);
      },
      observe() {},
      async [Symbol.asyncDispose]() {},
    },
    notify(topic) {
      for (const [listener, its_topic] of [...listeners]) if (its_topic === topic) listener();
    },
    subscribed: () => [...listeners.values()].sort(),
  };
}

describe('createWatchedCache', () => {
  function makeCache({ entries_max = 10 } = {}) {
    const { feed, notify, subscribed } = makeFeed();
    const loads: string[] = [];
    const values = new Map<string, string>();
    const cache = createWatchedCache<string, string>({
      feed,
      topic: (key) => `topic:${key}`,
      async load(key) {
        loads.push(key);
        const value = values.get(key);
        if (value === undefined) throw new Error('there is none');
        return value;
      },
      entries_max,
    });
    return { cache, notify, subscribed, loads, values };
  }

  test('loads a value once for calls during and after the load', async () => {
    const { cache, loads, values } = makeCache();
    values.set('a', 'first');
    expect(await Promise.all([cache.get('a'), cache.get('a')])).toEqual(['first', 'first']);
    expect(await cache.get('a')).toBe('first');
    expect(loads).toEqual(['a']);
  });

  test('loads again after a change of its topic or after forget, not after other changes', async () => {
    const { cache, notify, loads, values } = makeCache();
    for (const [round, forget] of [() => notify('topic:a'), () => cache.forget('a')].entries()) {
      values.set('a', `before ${round}`);
      cache.forget('a');
      expect(await cache.get('a')).toBe(`before ${round}`);
      values.set('a', `after ${round}`);
      notify('topic:b');
      expect(await cache.get('a')).toBe(`before ${round}`);
      forget();
      expect(await cache.get('a')).toBe(`after ${round}`);
    }
    expect(loads).toHaveLength(4);
  });

  test('does not keep a value that changed during its load', async () => {
    const { feed, notify } = makeFeed();
    const started = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    let value = 'old';
    const cache = createWatchedCache<string, string>({
      feed,
      topic: (key) => key,
      async load() {
        const seen = value;
        started.resolve();
        await end.promise;
        return seen;
      },
      entries_max: 10,
    });
    const first = cache.get('a');
    await started.promise;
    value = 'new';
    notify('a');
    end.resolve();
    expect(await first).toBe('old');
    expect(await cache.get('a')).toBe('new');
  });

  test('does not keep a failed load', async () => {
    const { cache, subscribed, values } = makeCache();
    await rejectionOf(Error, Promise.resolve(cache.get('a')));
    expect(subscribed()).toEqual([]);
    values.set('a', 'there');
    expect(await cache.get('a')).toBe('there');
  });

  test('keeps a later value when a load from before forget fails', async () => {
    const { feed } = makeFeed();
    const first = Promise.withResolvers<string>();
    const loads = [first.promise, Promise.resolve('second'), Promise.resolve('third')];
    const load = () => loads.shift() ?? Promise.reject(new Error('asked too often'));
    const cache = createWatchedCache<string, string>({ feed, topic: (key) => key, load, entries_max: 10 });
    const failing = rejectionOf(Error, Promise.resolve(cache.get('a')));
    cache.forget('a');
    expect(await cache.get('a')).toBe('second');
    first.reject(new Error('it fails late'));
    await failing;
    expect(await cache.get('a')).toBe('second');
  });

  test('keeps at most entries_max entries, and unsubscribes from dropped ones', async () => {
    const { cache, subscribed, loads, values } = makeCache({ entries_max: 2 });
    for (const key of ['a', 'b', 'c']) values.set(key, key);
    for (const key of ['a', 'b', 'c']) await cache.get(key);
    expect(subscribed()).toEqual(['topic:b', 'topic:c']);
    await cache.get('a');
    expect(loads).toEqual(['a', 'b', 'c', 'a']);
    expect(subscribed()).toEqual(['topic:a', 'topic:c']);
  });
});
