import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setSystemTime, test } from 'bun:test';
import { RedisClient } from 'bun';
import { systemClock } from '../../src/platform/clock.ts';
import type { ServiceEvent } from '../../src/platform/events.ts';
import { averagePerMinute, inEachMinute, type Limit } from '../../src/platform/limits/limit.ts';
import { type Limits, openLimits } from '../../src/platform/limits/limits.ts';
import type { StoreSettings } from '../../src/platform/limits/store-settings.ts';
import { HAS_REDIS, TEST_REDIS } from '../support/redis.ts';
import { openTestUpstash } from '../support/upstash.ts';

const opened = new DisposableStack();
afterAll(() => opened.dispose());
/** The stores that several processes share. */
const SHARED_STORES: [name: string, openStore: () => StoreSettings][] = [
  ['Redis', () => ({ kind: 'redis', url: TEST_REDIS })],
  [
    'Upstash',
    () => {
      const { url, token } = opened.use(openTestUpstash(TEST_REDIS));
      return { kind: 'upstash', url, token };
    },
  ],
];

const THREE = inEachMinute('three', 3);
/** Longer than any busy machine takes, so no store counts as silent here. */
const ANSWER_WITHIN_MS = 10_000;
const BEGIN = Date.UTC(2030, 0, 1);

/** Opens the limits of a process; processes with one epoch count together. */
async function open(store: StoreSettings | undefined, epoch: string = crypto.randomUUID(), scale = 1) {
  const events: ServiceEvent[] = [];
  const emit = (event: ServiceEvent) => void events.push(event);
  const counting = { clock: systemClock, events: { emit }, is_on: true, scale, store, epoch };
  const limits = await openLimits({ ...counting, answer_within_ms: ANSWER_WITHIN_MS });
  const count = async (limit: Limit, caller_key = 'me') => {
    const verdict = await limits.count(limit, caller_key);
    if (!verdict) throw new Error('limits are off');
    return verdict;
  };
  return { limits, count, events };
}

describe('limits: a count in this process', () => describeCount(() => undefined));
describe.skipIf(!HAS_REDIS).each(SHARED_STORES)('limits: a count in %s', (_name, openStore) =>
  describeCount(openStore),
);

function describeCount(openStore: () => StoreSettings | undefined): void {
  let store: StoreSettings | undefined;
  beforeAll(() => {
    store = openStore();
  });
  let limits: Limits;
  let count: Awaited<ReturnType<typeof open>>['count'];
  let events: ServiceEvent[];
  beforeEach(async () => {
    setSystemTime(BEGIN);
    ({ limits, count, events } = await open(store));
  });
  afterEach(() => {
    limits[Symbol.dispose]();
    setSystemTime();
    // A failure would have moved the counts to this process.
    expect(events).toEqual([]);
  });

  test('admits exactly the limit', async () => {
    const seen = [await count(THREE), await count(THREE), await count(THREE), await count(THREE), await count(THREE)];
    const rest = { limit: 3, reset_at: BEGIN + 60_000, reset_in_ms: 60_000 };
    expect(seen).toEqual([
      { is_within: true, remaining: 2, ...rest },
      { is_within: true, remaining: 1, ...rest },
      { is_within: true, remaining: 0, ...rest },
      { is_within: false, remaining: 0, ...rest },
      { is_within: false, remaining: 0, ...rest },
    ]);
  });

  test('ends its window to the millisecond, whether the limit was reached early or late', async () => {
    for (let window = 0; window < 3; window += 1) {
      const begin = BEGIN + window * 60_000;
      for (const moment of [0, 59_998, 59_999]) {
        setSystemTime(begin + moment);
        expect((await count(THREE)).is_within).toBe(true);
      }
      expect(await count(THREE)).toMatchObject({ is_within: false, reset_at: begin + 60_000, reset_in_ms: 1 });
    }
    setSystemTime(BEGIN + 3 * 60_000);
    expect((await count(THREE)).remaining).toBe(2);
  });

  test('admits exactly the limit of 200 concurrent requests', async () => {
    const limit = averagePerMinute('seventeen', 17, { window_ms: 60_000 });
    const verdicts = await Promise.all(Array.from({ length: 200 }, () => count(limit)));
    expect(verdicts.filter(({ is_within }) => is_within)).toHaveLength(17);
  });

  test('is separate for each caller and each limit', async () => {
    for (let number = 0; number < 4; number += 1) await count(THREE, 'public:one 203.0.113.9');
    expect((await count(THREE, 'public:one 203.0.113.9')).is_within).toBe(false);
    for (const caller_key of [
      'public:two 203.0.113.9',
      'public:one 203.0.113.8',
      'public:one 2001:db8::/64',
      '',
      '*',
    ]) {
      expect((await count(THREE, caller_key)).remaining).toBe(2);
    }
    expect((await count(inEachMinute('four', 4), 'public:one 203.0.113.9')).remaining).toBe(3);
  });

  test('has a limit that can be scaled', async () => {
    const more = await open(store, undefined, 1_000);
    expect(await more.count(THREE)).toMatchObject({ limit: 3_000, remaining: 2_999 });
    more.limits[Symbol.dispose]();
  });
}

test('limits: turned off, they count nothing and use no store', async () => {
  const store: StoreSettings = { kind: 'redis', url: 'redis://127.0.0.1:1' };
  const emitted: ServiceEvent[] = [];
  const events = { emit: (event: ServiceEvent) => void emitted.push(event) };
  using limits = await openLimits({ clock: systemClock, events, is_on: false, scale: 1, store, epoch: '' });
  expect(limits.count(THREE, 'me')).toBeUndefined();
  expect(emitted).toEqual([]);
});

test('limits: an in-process count returns without a promise', async () => {
  using limits = (await open(undefined)).limits;
  expect(limits.count(THREE, 'me')).not.toBeInstanceOf(Promise);
});

describe.skipIf(!HAS_REDIS).each(SHARED_STORES)('limits: several processes, with %s,', (_name, openStore) => {
  let store: StoreSettings;
  beforeAll(() => {
    store = openStore();
  });

  test('count together if they have one database, and apart otherwise', async () => {
    const epoch = crypto.randomUUID();
    const [one, other, unrelated] = [await open(store, epoch), await open(store, epoch), await open(store)];
    await Promise.all([one.count(THREE), other.count(THREE), one.count(THREE)]);
    expect((await other.count(THREE)).is_within).toBe(false);
    expect((await one.count(THREE)).is_within).toBe(false);
    expect((await unrelated.count(THREE)).remaining).toBe(2);
    for (const { limits } of [one, other, unrelated]) limits[Symbol.dispose]();
  });

  test('count apart where a limit protects each process', async () => {
    const epoch = crypto.randomUUID();
    const [one, other] = [await open(store, epoch), await open(store, epoch)];
    const limit = { ...THREE, counted: 'here' } as const;
    await one.count(limit);
    expect((await other.count(limit)).remaining).toBe(2);
    for (const { limits } of [one, other]) limits[Symbol.dispose]();
  });
});

const store: StoreSettings = { kind: 'redis', url: TEST_REDIS };
const openClient = () => new RedisClient(store.url);

test.skipIf(!HAS_REDIS)('limits: Redis keeps nothing after the window', async () => {
  const epoch = crypto.randomUUID();
  const { count, limits } = await open(store, epoch);
  await count(THREE);
  const client = openClient();
  const keys: string[] = await client.send('KEYS', [`muster:${epoch}:*`]);
  expect(keys).toHaveLength(2);
  for (const key of keys) expect(await client.pttl(key)).toBeWithin(1, 60_001);
  client.close();
  limits[Symbol.dispose]();
});

test.skipIf(!HAS_REDIS)('limits: a Redis that has forgotten its scripts gets them again', async () => {
  const { count, limits, events } = await open(store);
  const client = openClient();
  await count(THREE);
  await client.send('SCRIPT', ['FLUSH']);
  expect((await count(THREE)).remaining).toBe(1);
  expect(events).toEqual([]);
  client.close();
  limits[Symbol.dispose]();
});
