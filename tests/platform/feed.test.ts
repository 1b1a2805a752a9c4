import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { type Database, type DatabaseAddress, openDatabase } from '../../src/platform/database/database.ts';
import { createWatchedCache } from '../../src/platform/watch/cache.ts';
import { openFeed } from '../../src/platform/watch/feed.ts';
import { readEpoch, readVersions, touch } from '../../src/platform/watch/versions.ts';
import type { Watchable } from '../../src/platform/watch/views.ts';
import { openWatch } from '../../src/platform/watch/watch.ts';
import { openTestDatabase } from '../support/database.ts';
import { openProxied } from '../support/proxied.ts';
import { rejectionOf } from '../support/refusal.ts';
import { waitFor } from '../support/wait.ts';
import { answerOf, openWatchingNode, type WatchingNode, watchWords } from '../support/watching.ts';

let opened: AsyncDisposableStack;
let address: DatabaseAddress;
/** The writer has a connection of its own. */
let writer: Database;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  ({ address } = opened.use(await openTestDatabase()));
  writer = opened.use(openDatabase(address, 4));
});
afterAll(async () => {
  await opened.disposeAsync();
});

const newTopic = (): string => `test:${crypto.randomUUID()}`;
const touchOnce = (...topics: string[]) => writer.transact((tx) => touch(tx, topics));

interface News {
  topic: string;
  version: number | undefined;
}

describe('feed: a notification', () => {
  let node: WatchingNode;
  let heard: News[];
  beforeEach(async () => {
    node = await openWatchingNode(address);
    heard = [];
  });
  afterEach(async () => {
    await node[Symbol.asyncDispose]();
  });

  const subscribe = (topic: string) => node.feed.subscribe(topic, (version) => heard.push({ topic, version }));
  const hear = (topic: string, version: number) =>
    waitFor(
      () => heard.some((news) => news.topic === topic && news.version === version),
      `version ${version} of ${topic}`,
    );

  test('comes when the transaction commits, with the version, to all subscribers', async () => {
    const topic = newTopic();
    subscribe(topic);
    subscribe(topic);
    const commit = Promise.withResolvers<void>();
    const touched = Promise.withResolvers<void>();
    const work = writer.transact(async (tx) => {
      expect(await touch(tx, [topic])).toEqual(new Map([[topic, 1]]));
      touched.resolve();
      await commit.promise;
    });
    await touched.promise;
    const other = newTopic();
    subscribe(other);
    await touchOnce(other);
    await hear(other, 1);
    expect(heard).toEqual([{ topic: other, version: 1 }]);
    commit.resolve();
    await work;
    await hear(topic, 1);
    expect(heard.slice(1)).toEqual([
      { topic, version: 1 },
      { topic, version: 1 },
    ]);
  });

  test('does not come after a rollback', async () => {
    const topic = newTopic();
    subscribe(topic);
    const failed = writer.transact(async (tx) => {
      await touch(tx, [topic]);
      throw new Error('it fails');
    });
    await rejectionOf(Error, failed);
    await touchOnce(topic);
    await hear(topic, 1);
    expect(heard).toEqual([{ topic, version: 1 }]);
  });

  test('comes for each touched topic once, in the order of commits', async () => {
    const [one, two] = [newTopic(), newTopic()].sort();
    if (one === undefined || two === undefined) throw new Error('two topics are two');
    subscribe(one);
    subscribe(two);
    await touchOnce(two, one, two);
    await touchOnce(one);
    await hear(one, 2);
    expect(heard).toEqual([
      { topic: one, version: 1 },
      { topic: two, version: 1 },
      { topic: one, version: 2 },
    ]);
  });

  test('does not come after unsubscribing, but does to other subscribers', async () => {
    const topic = newTopic();
    const leave = subscribe(topic);
    const other: number[] = [];
    node.feed.subscribe(topic, (version) => other.push(version ?? 0));
    leave();
    leave();
    await touchOnce(topic);
    await waitFor(() => other.length > 0, 'the other to hear');
    expect({ heard, other }).toEqual({ heard: [], other: [1] });
  });

  test('may make its listener unsubscribe, and still reaches the others', async () => {
    const topic = newTopic();
    const leave = node.feed.subscribe(topic, () => leave());
    subscribe(topic);
    await touchOnce(topic);
    await hear(topic, 1);
    await touchOnce(topic);
    await hear(topic, 2);
    expect(heard).toHaveLength(2);
  });

  test('that was lost with the connection comes after reconnecting', async () => {
    const [changed, quiet] = [newTopic(), newTopic()];
    await touchOnce(changed, quiet);
    await using proxied = await openProxied(address);
    await using far = await openWatchingNode({ url: proxied.url });
    for (const topic of [changed, quiet]) far.feed.subscribe(topic, (version) => heard.push({ topic, version }));
    await touchOnce(changed, quiet);
    await Promise.all([hear(changed, 2), hear(quiet, 2)]);
    await proxied.proxy.cut();
    for (let times = 0; times < 3; times += 1) await touchOnce(changed);
    await proxied.proxy.mend();
    await hear(changed, 5);
    expect(heard.filter(({ topic }) => topic === quiet)).toEqual([{ topic: quiet, version: 2 }]);
    expect(far.events.map(({ event }) => event)).toContain('feed_reconnected');
  });

  test('feed: its first connection is no reconnection', async () => {
    const topic = newTopic();
    subscribe(topic);
    await touchOnce(topic);
    await hear(topic, 1);
    expect(node.events).toEqual([]);
  });

  test('that PostgreSQL did not deliver comes from comparing versions, and is counted', async () => {
    const topic = newTopic();
    await using alert = await openWatchingNode(address, { recheck_every_ms: 50 });
    alert.feed.subscribe(topic, (version) => heard.push({ topic, version }));
    await touchOnce(topic);
    await hear(topic, 1);
    await writer.queries.execute(sql`update topics set version = 2 where topic = ${topic}`);
    await hear(topic, 2);
    await waitFor(() => alert.events.length > 0, 'it to be counted');
    expect(alert.events).toEqual([{ event: 'loop_corrected', loop: 'feed', count: 1 }]);
  });
});

describe('versions', () => {
  test('of what was never touched are 0, and there is one for each name', async () => {
    const [touched, untouched] = [newTopic(), newTopic()];
    await touchOnce(touched);
    expect(await readVersions(writer.queries, [touched, untouched])).toEqual(
      new Map([
        [touched, 1],
        [untouched, 0],
      ]),
    );
    expect(await readVersions(writer.queries, [])).toEqual(new Map());
  });

  test('of many topics touched at once in any order are bumped by each, without a deadlock', async () => {
    const topics = Array.from({ length: 20 }, newTopic);
    await Promise.all(
      Array.from({ length: 12 }, (_, number) => touchOnce(...(number % 2 === 0 ? topics : topics.toReversed()))),
    );
    expect(new Set((await readVersions(writer.queries, topics)).values())).toEqual(new Set([12]));
  });

  test('belong to one epoch, however many processes create it', async () => {
    await using others = openDatabase(address, 5);
    const epochs = await Promise.all(Array.from({ length: 5 }, () => readEpoch(others.queries)));
    expect(new Set([...epochs, await readEpoch(writer.queries)]).size).toBe(1);
    expect(epochs[0]).toMatch(/^[0-9a-f]{8}$/);
  });
});

describe('feed.observe', () => {
  test('evicts cached values that are older than an index', async () => {
    const name = crypto.randomUUID();
    await using opened = new AsyncDisposableStack();
    const database = opened.use(openDatabase(address, 4));
    const deaf: Database = Object.assign(Object.create(database), { listen: async () => {} });
    const feed = opened.use(await openFeed(deaf, { emit() {} }, 60_000));
    const limits = { watch_hold_ms: 60_000, watchers_max: 10, watchers_per_caller_max: 10 };
    const node = { database, watch: await openWatch(database.queries, feed, limits) };
    await database.queries.execute(sql`create table if not exists words (name text primary key, word int not null)`);
    const words = watchWords(node);
    const remembered = createWatchedCache({
      feed,
      topic: (key) => `word:${key}`,
      load: (key) => words.read(key),
      entries_max: 10,
    });
    const watchable: Watchable<string, number> = {
      topics: words.topics,
      read: async (key) => await remembered.get(key),
    };
    const change = (word: number) =>
      writer.transact(async (tx) => {
        await touch(tx, [`word:${name}`]);
        await tx.execute(sql`
          insert into words values (${name}, ${word}) on conflict (name) do update set word = excluded.word`);
      });
    const signal = new AbortController().signal;
    const look = () => answerOf(node, watchable, name, { watch_index: undefined, signal, caller_key: 'ann' });
    const indices: string[] = [];
    for (const word of [1, 2, 3]) {
      await change(word);
      const { view, watch } = await look();
      expect(view).toBe(word);
      indices.push(watch.index);
      expect(await look()).toEqual({ view, watch });
      // As soon as the feed knows where it stands, what has not changed is not read again.
      expect(words.reads).toBe(word + 1);
    }
    expect(new Set(indices).size).toBe(3);
  });
});
