import { beforeEach, describe, expect, test } from 'bun:test';
import type { Queries } from '../../src/platform/database/database.ts';
import {
  type ChannelTools,
  createChannels,
  type SharedChannel,
  type Snapshot,
} from '../../src/platform/watch/channels.ts';
import type { Feed } from '../../src/platform/watch/feed.ts';
import { createLogChannel } from '../../src/platform/watch/log-channel.ts';
import { createSharedReads } from '../../src/platform/watch/shared-reads.ts';
import { createStateChannel } from '../../src/platform/watch/state-channel.ts';
import type { LogPage, View } from '../../src/platform/watch/views.ts';
import { rejectionOf } from '../support/refusal.ts';
import { runPending } from '../support/wait.ts';

/** A query that a test answers. */
interface PendingQuery<Value> {
  answer(value: Value): void;
  fail(): void;
}

const failure = new Error('the database does not answer');

function makeDatabase<Value>() {
  const queries: PendingQuery<Value>[] = [];
  return {
    ask(): Promise<Value> {
      const { promise, resolve, reject } = Promise.withResolvers<Value>();
      queries.push({ answer: resolve, fail: () => reject(failure) });
      return promise;
    },
    /** Returns the oldest query that no test has taken. */
    async take(): Promise<PendingQuery<Value>> {
      await runPending();
      const taken = queries.shift();
      if (!taken) throw new Error('nothing queries the database');
      return taken;
    },
  };
}

const toSnapshot = (body: object, number: number, from?: number): Snapshot => ({
  number,
  from,
  text: JSON.stringify(body),
});

describe('createStateChannel', () => {
  let versions: ReturnType<typeof makeDatabase<number>>;
  let channel: SharedChannel;
  let value: string;
  beforeEach(() => {
    value = 'old';
    versions = makeDatabase();
    const tools: ChannelTools = {
      readVersions: async () => new Map([['topic', await versions.ask()]]),
      share: createSharedReads(),
      toSnapshot,
    };
    const view: View & { kind: 'state' } = {
      kind: 'state',
      name: 'it',
      topics: ['topic'],
      read: async () => ({ value }),
    };
    channel = createStateChannel(view, tools);
  });

  test('keeps a change that comes during a read of versions, even if an older read ends last', async () => {
    const first = channel.since(4);
    const slow = await versions.take();
    channel.onChange('topic', 5);
    value = 'new';
    const second = channel.since(4);
    const fast = await versions.take();
    fast.answer(5);
    slow.answer(4);
    expect([await first, await second].map((seen) => seen?.text)).toEqual(['{"value":"new"}', '{"value":"new"}']);
    expect((await channel.since(4))?.number).toBe(5);
    expect(await channel.since(5)).toBeUndefined();
  });

  test('takes the latest of several changes during a read of versions, in any order', async () => {
    const seen = channel.since(4);
    const reading = await versions.take();
    channel.onChange('topic', 6);
    channel.onChange('topic', 5);
    reading.answer(4);
    expect((await seen)?.number).toBe(6);
  });

  test('never shows a newer state under a number that was already shown', async () => {
    const first = channel.present(undefined);
    (await versions.take()).answer(4);
    expect(await first).toMatchObject({ number: 4, text: '{"value":"old"}' });
    const same = channel.present(4);
    (await versions.take()).answer(4);
    expect(await same).toMatchObject({ number: 4, text: '{"value":"old"}' });
    channel.evict();
    value = 'new';
    const other = channel.present(4);
    (await versions.take()).answer(5);
    expect(await other).toMatchObject({ number: 5, text: '{"value":"new"}' });
  });

  test('returns the state of the later read, even if an earlier read ends last', async () => {
    const reads = makeDatabase<object>();
    const tools: ChannelTools = {
      readVersions: async () => new Map([['topic', 4]]),
      share: createSharedReads(),
      toSnapshot,
    };
    const reading = createStateChannel({ kind: 'state', name: 'it', topics: ['topic'], read: reads.ask }, tools);
    const first = reading.present(undefined);
    const slow = await reads.take();
    const second = reading.present(undefined);
    const fast = await reads.take();
    fast.answer({ value: 'new' });
    expect((await second).text).toBe('{"value":"new"}');
    slow.answer({ value: 'old' });
    expect((await first).text).toBe('{"value":"new"}');
    expect((await reading.present(undefined)).text).toBe('{"value":"new"}');
  });

  test('reads again after a lower version than it knows, because the database may have been restored', async () => {
    const seen = channel.since(4);
    (await versions.take()).answer(9);
    expect((await seen)?.number).toBe(9);
    channel.onChange('topic', 3);
    const again = channel.since(9);
    // One read for the number, and one more because another process may know a higher one.
    (await versions.take()).answer(3);
    (await versions.take()).answer(3);
    expect((await again)?.number).toBe(3);
  });
});

describe('createLogChannel', () => {
  let pages: ReturnType<typeof makeDatabase<LogPage<object>>>;
  let last_pages: ReturnType<typeof makeDatabase<LogPage<object>>>;
  let channel: SharedChannel;
  beforeEach(() => {
    pages = makeDatabase();
    last_pages = makeDatabase();
    const view: View & { kind: 'log' } = {
      kind: 'log',
      name: 'it',
      topics: ['topic'],
      last: () => last_pages.ask(),
      from: () => pages.ask(),
    };
    channel = createLogChannel(view, { readVersions: async () => new Map(), share: createSharedReads(), toSnapshot });
  });
  const upTo = (next: number): LogPage<object> => ({ content: { next }, next });

  /** Opens the channel at its end, which is 5. */
  async function openAtFive(): Promise<void> {
    const seen = channel.since(5);
    (await last_pages.take()).answer(upTo(5));
    (await pages.take()).answer(upTo(5));
    expect(await seen).toBeUndefined();
  }

  test('reads again after a failed read', async () => {
    await openAtFive();
    channel.onChange('topic', 1);
    const seen = rejectionOf(Error, Promise.resolve(channel.since(5)));
    (await pages.take()).fail();
    expect(await seen).toBe(failure);
    const again = channel.since(5);
    (await pages.take()).answer(upTo(6));
    expect((await again)?.number).toBe(6);
  });

  test('shares a read at the end with calls that come during it', async () => {
    await openAtFive();
    // The change came without listeners, and no other follows.
    channel.onChange('topic', 1);
    const first = channel.since(5);
    const query = await pages.take();
    const second = channel.since(5);
    await runPending();
    query.answer(upTo(6));
    expect([(await first)?.number, (await second)?.number]).toEqual([6, 6]);
  });

  test('reads once for all calls at the end until a change', async () => {
    await openAtFive();
    expect(await Promise.all([channel.since(5), channel.since(5)])).toEqual([undefined, undefined]);
  });

  test('ignores an end that was read before a later one', async () => {
    const first = channel.since(5);
    const early = await last_pages.take();
    const second = channel.since(3);
    const late = await last_pages.take();
    early.answer(upTo(5));
    const page = await pages.take();
    page.answer(upTo(8));
    expect((await first)?.number).toBe(8);
    late.answer(upTo(5));
    await runPending();
    // A refresh goes on until there is nothing more.
    let rounds = 0;
    const refreshing = (async () => {
      while (rounds < 10 && (await channel.refresh())) rounds += 1;
    })();
    (await pages.take()).answer(upTo(8));
    (await pages.take()).answer(upTo(8));
    await Promise.all([second, refreshing]);
    expect(rounds).toBeLessThan(3);
  });

  test('starts over for a number beyond the end', async () => {
    await openAtFive();
    const seen = channel.since(1_000_000);
    (await last_pages.take()).answer(upTo(5));
    expect((await seen)?.number).toBe(5);
  });

  test('accepts a higher number from another process', async () => {
    await openAtFive();
    const seen = channel.since(7);
    (await last_pages.take()).answer(upTo(7));
    (await pages.take()).answer(upTo(7));
    expect(await seen).toBeUndefined();
    channel.onChange('topic', 2);
    const next = channel.since(7);
    (await pages.take()).answer(upTo(8));
    expect((await next)?.number).toBe(8);
  });
});

test.each([1, 64])('createChannels: idle channels with %p topics each unsubscribe beyond the limit', (topics_each) => {
  const subscribed = new Set<string>();
  const feed: Feed = {
    subscribe(topic) {
      subscribed.add(topic);
      return () => subscribed.delete(topic);
    },
    observe() {},
    async [Symbol.asyncDispose]() {},
  };
  const channels = createChannels({} as Queries, feed, 'epoch');
  const listener = { onChange() {} };
  const topicsOf = (name: string) => Array.from({ length: topics_each }, (_, index) => `${name}, topic ${index}`);
  const viewOf = (name: string): View => ({ kind: 'state', name, topics: topicsOf(name), read: async () => ({}) });
  channels.listen(viewOf('kept'), listener);
  for (let number = 0; number < 5_000; number += 1) {
    channels.listen(viewOf(`number ${number}`), listener).leave();
  }
  expect(subscribed.size).toBeWithin(1_000, 4_000 + topics_each);
  const isSubscribed = (name: string) => topicsOf(name).some((topic) => subscribed.has(topic));
  expect(['kept', 'number 0', 'number 4999'].map(isSubscribed)).toEqual([true, false, true]);
});
