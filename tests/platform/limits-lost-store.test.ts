import { describe, expect, test } from 'bun:test';
import { systemClock } from '../../src/platform/clock.ts';
import { ServiceError } from '../../src/platform/errors.ts';
import type { ServiceEvent } from '../../src/platform/events.ts';
import { averagePerMinute } from '../../src/platform/limits/limit.ts';
import { openLimits } from '../../src/platform/limits/limits.ts';
import type { StoreSettings } from '../../src/platform/limits/store-settings.ts';
import { openTcpProxy } from '../support/network/tcp-proxy.ts';
import { HAS_REDIS, TEST_REDIS } from '../support/redis.ts';
import { rejectionOf } from '../support/refusal.ts';
import { openTestUpstash } from '../support/upstash.ts';
import { waitFor } from '../support/wait.ts';

/** A day, so no window ends while a test runs. */
const window_ms = 86_400_000;
const HUNDRED = averagePerMinute('hundred', 100 / 1_440, { window_ms });
const GUARDED = averagePerMinute('guarded', 100 / 1_440, { window_ms, when_store_is_lost: 'refuse' });

/** A store that works answers within this, also on a busy machine. */
const ANSWER_WITHIN_MS = 2_000;

async function open(store: StoreSettings, answer_within_ms = ANSWER_WITHIN_MS) {
  const events: ServiceEvent[] = [];
  const emit = (event: ServiceEvent) => void events.push(event);
  const limits = await openLimits({
    clock: systemClock,
    events: { emit },
    is_on: true,
    scale: 1,
    store,
    epoch: crypto.randomUUID(),
    answer_within_ms,
  });
  const count = async (limit = HUNDRED) => (await limits.count(limit, 'me'))?.remaining;
  const eventNames = () => events.map(({ event }) => event);
  return { count, eventNames, events, [Symbol.dispose]: () => limits[Symbol.dispose]() };
}

/** A store that a test can make unavailable, and available again. */
interface FailingStore {
  store: StoreSettings;
  fail(): Promise<void> | void;
  heal(): Promise<void> | void;
}

async function useRedis(stack: AsyncDisposableStack, way: 'cut' | 'stall'): Promise<FailingStore> {
  const { hostname, port, pathname } = new URL(TEST_REDIS);
  const proxy = stack.use(await openTcpProxy({ host: hostname, port: Number(port || 6379) }));
  const store: StoreSettings = { kind: 'redis', url: `redis://127.0.0.1:${proxy.port}${pathname}` };
  return way === 'cut'
    ? { store, fail: () => proxy.cut(), heal: () => proxy.heal() }
    : { store, fail: () => proxy.stall(), heal() {} };
}

function useUpstash(stack: AsyncDisposableStack, answer: () => Response | Promise<Response>): FailingStore {
  const upstash = openTestUpstash(TEST_REDIS);
  stack.defer(() => upstash[Symbol.dispose]());
  const { url, token } = upstash;
  return {
    store: { kind: 'upstash', url, token },
    fail() {
      upstash.answer = answer;
    },
    heal() {
      upstash.answer = undefined;
    },
  };
}

const json = (status: number, body: unknown) => () => Response.json(body, { status });
const WAYS: [what: string, use: (stack: AsyncDisposableStack) => Promise<FailingStore> | FailingStore][] = [
  ['Redis closes connections', (stack) => useRedis(stack, 'cut')],
  ['Redis does not answer', (stack) => useRedis(stack, 'stall')],
  ['Upstash does not answer', (stack) => useUpstash(stack, () => new Promise(() => {}))],
  ['Upstash fails', (stack) => useUpstash(stack, json(500, { error: 'internal' }))],
  ['Upstash refuses the token', (stack) => useUpstash(stack, json(401, { error: 'Unauthorized' }))],
  ['Upstash answers with something else', (stack) => useUpstash(stack, () => new Response('<html>'))],
];

describe.skipIf(!HAS_REDIS).each(WAYS)('limits: when %s,', (_what, use) => {
  test('this process counts on its own, refuses what must not go uncounted, and reports it once', async () => {
    await using stack = new AsyncDisposableStack();
    const { store, fail, heal } = await use(stack);
    using limits = await open(store);
    for (const remaining of [99, 98, 97]) expect(await limits.count()).toBe(remaining);
    expect(limits.eventNames()).toEqual([]);

    await fail();
    const counted = await Promise.all(Array.from({ length: 40 }, () => limits.count()));
    // Counting starts at zero: this process does not know the shared counts.
    expect(counted.sort()).toEqual(Array.from({ length: 40 }, (_, number) => 60 + number));
    const { code, status, retry_after_ms } = await rejectionOf(ServiceError, limits.count(GUARDED));
    expect({ code, status, retry_after_ms }).toEqual({
      code: 'LIMITS_UNAVAILABLE',
      status: 503,
      retry_after_ms: 1_000,
    });
    expect(limits.eventNames()).toEqual(['limits_store_lost']);
    expect(limits.events[0]).toMatchObject({ store: store.kind, cause: expect.any(Error) });

    await heal();
    await waitFor(async () => ((await limits.count()) ?? 0) > 90, 'the store to count again');
    expect(limits.eventNames()).toEqual(['limits_store_lost', 'limits_store_found']);
    expect(await limits.count(GUARDED)).toBe(99);
  });
});

test.skipIf(!HAS_REDIS)(
  'limits: a Redis whose connection takes longer than the timeout is used once it is connected',
  async () => {
    const { hostname, port, pathname } = new URL(TEST_REDIS);
    await using proxy = await openTcpProxy({ host: hostname, port: Number(port || 6379) });
    const release = proxy.hold();
    using limits = await open({ kind: 'redis', url: `redis://127.0.0.1:${proxy.port}${pathname}` }, 200);
    expect(limits.eventNames()).toEqual(['limits_store_lost']);
    release();
    await waitFor(async () => {
      await limits.count();
      return limits.eventNames().includes('limits_store_found');
    }, 'the store to count');
    expect(proxy.connections).toBe(1);
  },
);

test('limits: a store that is unavailable at the start does not stop the start', async () => {
  using limits = await open({ kind: 'redis', url: 'redis://127.0.0.1:1' });
  expect(limits.eventNames()).toEqual(['limits_store_lost']);
  expect(await limits.count()).toBe(99);
});
