import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { type SQL, sql } from 'drizzle-orm';
import { type Database, type DatabaseAddress, openDatabase } from '../../src/platform/database/database.ts';
import type { ServiceEvent } from '../../src/platform/events.ts';
import { listLoops } from '../../src/platform/loop.ts';
import { createWatchedCache } from '../../src/platform/watch/cache.ts';
import { openFeed } from '../../src/platform/watch/feed.ts';
import { CHANGES_CHANNEL } from '../../src/platform/watch/notifications.ts';
import { deleteTopics, readEpoch, readVersions, touch } from '../../src/platform/watch/versions.ts';
import type { Watchable } from '../../src/platform/watch/views.ts';
import { openWatch } from '../../src/platform/watch/watch.ts';
import { openTestDatabase } from '../support/database/database.ts';
import { openDatabaseProxy } from '../support/network/database-proxy.ts';
import { rejectionOf } from '../support/refusal.ts';
import { waitFor } from '../support/wait.ts';
import { createNumbers } from '../support/watch/numbers.ts';
import { answerOfState, openWatchingNode, type WatchingNode, watchNumbers } from '../support/watch/watching.ts';

let opened: AsyncDisposableStack;
let address: DatabaseAddress;
/** Has connections of its own. */
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

interface Notification {
  topic: string;
  version: number | undefined;
}

const byTopic = (one: Notification, other: Notification) => one.topic.localeCompare(other.topic);

test('feed: no loop remains of a feed that cannot listen', async () => {
  await using database = openDatabase(address, 1);
  const log = { emit() {} };
  const refusing = { ...database, listen: () => Promise.reject(new Error('it cannot listen')) };
  await rejectionOf(Error, openFeed(refusing, log));
  expect(listLoops(log)).toEqual([]);
});

test('feed: a version that was read before a notification does not replace the newer one', async () => {
  await using database = openDatabase(address, 2);
  /** The answers that are held back until they are released. */
  let held: PromiseWithResolvers<void> | undefined;
  let comparisons = 0;
  const queries = new Proxy(database.queries, {
    get(target, key, receiver) {
      if (key !== 'execute') return Reflect.get(target, key, receiver);
      return async (query: SQL) => {
        const rows = await target.execute(query);
        comparisons += 1;
        await held?.promise;
        return rows;
      };
    },
  });
  const events: ServiceEvent[] = [];
  const log = { emit: (event: ServiceEvent) => void events.push(event) };
  await using feed = await openFeed({ ...database, queries }, log, 20);
  const topic = newTopic();
  await touchOnce(topic);
  const received: (number | undefined)[] = [];
  feed.subscribe(topic, (version) => received.push(version));
  await waitFor(() => received.length > 0, 'the version to be known');
  held = Promise.withResolvers<void>();
  const before = comparisons;
  await waitFor(() => comparisons > before, 'the version to be read again');
  await touchOnce(topic);
  await waitFor(() => received.includes(2), 'the notification');
  held.resolve();
  await waitFor(() => comparisons > before + 2, 'a further comparison to end');
  expect(received).toEqual([1, 2]);
  expect(events).toEqual([]);
});

describe('feed: a notification', () => {
  let node: WatchingNode;
  let received: Notification[];
  beforeEach(async () => {
    node = await openWatchingNode(address);
    received = [];
  });
  afterEach(async () => {
    await node[Symbol.asyncDispose]();
  });

  const subscribe = (topic: string) => node.feed.subscribe(topic, (version) => received.push({ topic, version }));
  const waitForNotification = (topic: string, version: number) =>
    waitFor(
      () => received.some((notification) => notification.topic === topic && notification.version === version),
      `version ${version} of ${topic}`,
    );

  test('comes to all subscribers when the transaction commits, with the version', async () => {
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
    await waitForNotification(other, 1);
    expect(received).toEqual([{ topic: other, version: 1 }]);
    commit.resolve();
    await work;
    await waitForNotification(topic, 1);
    expect(received.slice(1)).toEqual([
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
    await waitForNotification(topic, 1);
    expect(received).toEqual([{ topic, version: 1 }]);
  });

  test('comes once for each touched topic, in the order of commits', async () => {
    const [one, two] = [newTopic(), newTopic()].sort();
    if (one === undefined || two === undefined) throw new Error('there are two topics');
    subscribe(one);
    subscribe(two);
    await touchOnce(two, one, two);
    await touchOnce(one);
    await waitForNotification(one, 2);
    expect(received).toEqual([
      { topic: one, version: 1 },
      { topic: two, version: 1 },
      { topic: one, version: 2 },
    ]);
  });

  test('names many topics of one transaction, however long their names are', async () => {
    const long = 'of a long name '.repeat(20).replaceAll(' ', '-');
    const changed = Array.from({ length: 500 }, (_, number) => (number % 5 === 0 ? newTopic() + long : newTopic()));
    const payloads: string[] = [];
    await node.database.listen(
      CHANGES_CHANNEL,
      (payload) => payloads.push(payload),
      () => {},
    );
    for (const topic of changed) subscribe(topic);
    await touchOnce(...changed);
    await waitFor(() => received.length === changed.length, 'all topics');
    expect(received.toSorted(byTopic)).toEqual(changed.map((topic) => ({ topic, version: 1 })).toSorted(byTopic));
    expect(payloads.length).toBeLessThan(15);
    expect(Math.max(...payloads.map((payload) => Buffer.byteLength(payload)))).toBeGreaterThan(6_000);
  });

  test('of a process of an older release, with one topic, comes too', async () => {
    const topic = newTopic();
    subscribe(topic);
    await writer.queries.execute(sql`select pg_notify(${CHANGES_CHANNEL}, ${`7 ${topic}`})`);
    await waitForNotification(topic, 7);
  });

  test('of deleted topics comes with version 0', async () => {
    const changed = Array.from({ length: 300 }, newTopic);
    await touchOnce(...changed);
    for (const topic of changed) subscribe(topic);
    await writer.transact((tx) => deleteTopics(tx, changed));
    const ofDeleted = () => received.flatMap(({ topic, version }) => (version === 0 ? [topic] : []));
    await waitFor(() => ofDeleted().length === changed.length, 'all topics');
    expect(ofDeleted().toSorted()).toEqual(changed.toSorted());
  });

  test('does not come after unsubscribing, but still comes to other subscribers', async () => {
    const topic = newTopic();
    const unsubscribe = subscribe(topic);
    const other: number[] = [];
    node.feed.subscribe(topic, (version) => other.push(version ?? 0));
    unsubscribe();
    unsubscribe();
    await touchOnce(topic);
    await waitFor(() => other.length > 0, 'the notification of the other');
    expect({ received, other }).toEqual({ received: [], other: [1] });
  });

  test('may make its listener unsubscribe, and still comes to the others', async () => {
    const topic = newTopic();
    const unsubscribe = node.feed.subscribe(topic, () => unsubscribe());
    subscribe(topic);
    await touchOnce(topic);
    await waitForNotification(topic, 1);
    await touchOnce(topic);
    await waitForNotification(topic, 2);
    expect(received).toHaveLength(2);
  });

  test('that was lost with the connection comes after reconnecting', async () => {
    const [changed, unchanged] = [newTopic(), newTopic()];
    await touchOnce(changed, unchanged);
    await using proxied = await openDatabaseProxy(address);
    await using far = await openWatchingNode({ url: proxied.url });
    for (const topic of [changed, unchanged]) far.feed.subscribe(topic, (version) => received.push({ topic, version }));
    await touchOnce(changed, unchanged);
    await Promise.all([waitForNotification(changed, 2), waitForNotification(unchanged, 2)]);
    await proxied.proxy.cut();
    for (let times = 0; times < 3; times += 1) await touchOnce(changed);
    await proxied.proxy.heal();
    await waitForNotification(changed, 5);
    expect(received.filter(({ topic }) => topic === unchanged)).toEqual([{ topic: unchanged, version: 2 }]);
    expect(far.events.map(({ event }) => event)).toContain('feed_reconnected');
  });

  test('feed: the first connection is not a reconnection', async () => {
    const topic = newTopic();
    subscribe(topic);
    await touchOnce(topic);
    await waitForNotification(topic, 1);
    expect(node.events).toEqual([]);
  });

  test('that PostgreSQL did not deliver comes from comparing versions, and is counted', async () => {
    const topic = newTopic();
    await using alert = await openWatchingNode(address, { recheck_every_ms: 50 });
    alert.feed.subscribe(topic, (version) => received.push({ topic, version }));
    await touchOnce(topic);
    await waitForNotification(topic, 1);
    await writer.queries.execute(sql`update topics set version = 2 where topic = ${topic}`);
    await waitForNotification(topic, 2);
    await waitFor(() => alert.events.length > 0, 'the missed notification to be counted');
    expect(alert.events).toEqual([{ event: 'loop_corrected', loop: 'feed', count: 1 }]);
  });
});

describe('versions', () => {
  test('are 0 for a topic that was never touched, and one for each name', async () => {
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

  test('of many topics touched concurrently in any order are bumped by each, without a deadlock', async () => {
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
    const silent: Database = Object.assign(Object.create(database), { listen: async () => {} });
    const feed = opened.use(await openFeed(silent, { emit() {} }, 60_000));
    const limits = { watch_hold_ms: 60_000, watchers_max: 10, watchers_per_caller_max: 10 };
    const node = { database, watch: await openWatch(database.queries, feed, limits) };
    await createNumbers(database.queries);
    const numbers = watchNumbers(node);
    const cached = createWatchedCache({
      feed,
      topic: (key) => `number:${key}`,
      load: (key) => numbers.read(key),
      entries_max: 10,
    });
    const watchable: Watchable<string, number> = {
      topics: numbers.topics,
      read: async (key) => await cached.get(key),
    };
    const change = (number: number) =>
      writer.transact(async (tx) => {
        await touch(tx, [`number:${name}`]);
        await tx.execute(sql`
          insert into numbers values (${name}, ${number}) on conflict (name) do update set number = excluded.number`);
      });
    const signal = new AbortController().signal;
    const readOnce = () => answerOfState(node, watchable, name, { watch_index: undefined, signal, caller_key: 'ann' });
    const indexes: string[] = [];
    for (const number of [1, 2, 3]) {
      await change(number);
      const { view, watch } = await readOnce();
      expect(view).toBe(number);
      indexes.push(watch.index);
      expect(await readOnce()).toEqual({ view, watch });
      // Once the feed is ready, an unchanged value is not read again.
      expect(numbers.reads).toBe(number + 1);
    }
    expect(new Set(indexes).size).toBe(3);
  });
});
