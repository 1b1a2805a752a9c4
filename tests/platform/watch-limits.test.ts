import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { ServiceError } from '../../src/platform/errors.ts';
import { openTestDatabase } from '../support/database/database.ts';
import { rejectionOf } from '../support/refusal.ts';
import { waitFor } from '../support/wait.ts';
import {
  answerOfState,
  incrementNumber,
  openWatchingNode,
  type WatchingNode,
  watchNumbers,
} from '../support/watch/watching.ts';

const PER_CALLER_MAX = 64;
const IN_ALL_MAX = 20_000;

describe('waiters for a change', () => {
  let opened: AsyncDisposableStack;
  let node: WatchingNode;
  let stop: AbortController;
  beforeAll(async () => {
    opened = new AsyncDisposableStack();
    const { address } = opened.use(await openTestDatabase());
    node = opened.use(await openWatchingNode(address));
  });
  afterAll(async () => {
    await opened.disposeAsync();
  });
  beforeEach(() => {
    stop = new AbortController();
  });
  afterEach(() => stop.abort());

  /** Waits for a change that never comes, without the database. */
  const wait = (caller_key: string, signal: AbortSignal = stop.signal) =>
    node.watch.until('never', async () => undefined, { signal, caller_key, timeout_ms: 600_000 });
  const refusalOf = (work: Promise<unknown>) => rejectionOf<ServiceError>(ServiceError, work);

  test(`are at most ${PER_CALLER_MAX} for each caller, without effect on other callers`, async () => {
    const waiting = Array.from({ length: PER_CALLER_MAX }, () => wait('ann'));
    const { code, status, retry_after_ms } = await refusalOf(wait('ann'));
    expect({ code, status, retry_after_ms }).toEqual({ code: 'TOO_MANY_WATCHERS', status: 429, retry_after_ms: 1_000 });
    const other = wait('bob');
    stop.abort();
    expect(new Set(await Promise.all([...waiting, other]))).toEqual(new Set([undefined]));
  });

  const ENDS = [
    {
      how: 'are aborted',
      async end() {
        const leaving = new AbortController();
        const waiting = wait('ann', leaving.signal);
        await expectFull();
        leaving.abort();
        await waiting;
      },
    },
    {
      how: 'are answered',
      async end() {
        const numbers = watchNumbers(node);
        const request = { watch_index: undefined, signal: stop.signal, caller_key: 'ann' };
        const { watch } = await answerOfState(node, numbers, 'ann', request);
        const answered = answerOfState(node, numbers, 'ann', { ...request, watch_index: watch.index });
        await expectFull();
        await incrementNumber(node, 'ann');
        await answered;
      },
    },
    {
      how: 'are not answered in time',
      async end() {
        const waiting = { signal: stop.signal, caller_key: 'ann', timeout_ms: 20 };
        await node.watch.until('never', async () => undefined, waiting);
      },
    },
    {
      how: 'fail',
      async end() {
        const waiting = { signal: stop.signal, caller_key: 'ann', timeout_ms: 600_000 };
        await rejectionOf(
          Error,
          node.watch.until('never', () => Promise.reject(new Error('it fails')), waiting),
        );
      },
    },
  ];
  const expectFull = async () => expect((await refusalOf(wait('ann'))).code).toBe('TOO_MANY_WATCHERS');

  for (const { how, end } of ENDS) {
    test(`free their one slot when they ${how}`, async () => {
      const waiting = Array.from({ length: PER_CALLER_MAX - 1 }, () => wait('ann'));
      await end();
      await end();
      const last = wait('ann');
      await expectFull();
      stop.abort();
      await Promise.all([...waiting, last]);
    });
  }

  test(`are at most ${IN_ALL_MAX} in all, without effect on calls of until; each one that ends frees its slot`, async () => {
    const takeSlot = (caller_key: string) => node.watch.takeSlot(caller_key);
    const slots = Array.from({ length: IN_ALL_MAX }, (_, number) =>
      takeSlot(`player ${Math.floor(number / PER_CALLER_MAX)}`),
    );
    const isFull = () => refusalOf((async () => takeSlot('one more'))());
    expect((await isFull()).code).toBe('TOO_MANY_WATCHERS');
    const waiting = wait('a find');
    slots.pop()?.();
    expect((await isFull()).code).toBe('TOO_MANY_WATCHERS');
    stop.abort();
    expect(await waiting).toBeUndefined();
    slots.push(takeSlot('one more'));
    for (const free of slots) free();
  });

  test('requests without an index take no slot', async () => {
    const waiting = Array.from({ length: PER_CALLER_MAX }, () => wait('ann'));
    const request = { watch_index: undefined, signal: stop.signal, caller_key: 'ann' };
    expect((await answerOfState(node, watchNumbers(node), 'untouched', request)).view).toBe(0);
    stop.abort();
    await Promise.all(waiting);
  });

  test('watch.until: reads first, then after each change', async () => {
    let reads = 0;
    let wanted = false;
    const read = async () => {
      reads += 1;
      return wanted ? 'seen' : undefined;
    };
    const seen = node.watch.until('number:ann', read, {
      signal: stop.signal,
      caller_key: 'ann',
      timeout_ms: 600_000,
    });
    await waitFor(() => reads === 1, 'the first read');
    await incrementNumber(node, 'ann');
    await waitFor(() => reads === 2, 'the second read');
    wanted = true;
    await incrementNumber(node, 'ann');
    expect(await seen).toBe('seen');
    expect(reads).toBe(3);
  });

  test('watch.until: reads again after a change that comes during a read', async () => {
    let value = 'old';
    const read = async () => {
      const seen = value;
      if (seen === 'new') return seen;
      const notified = Promise.withResolvers<void>();
      const unsubscribe = node.feed.subscribe('number:eve', () => notified.resolve());
      value = 'new';
      await incrementNumber(node, 'eve');
      await notified.promise;
      unsubscribe();
      return undefined;
    };
    const waiting = { signal: stop.signal, caller_key: 'ann', timeout_ms: 600_000 };
    expect(await node.watch.until('number:eve', read, waiting)).toBe('new');
  });

  test('watch.until: reads once more at its deadline, and returns undefined', async () => {
    let reads = 0;
    const read = async () => {
      reads += 1;
      return undefined;
    };
    expect(
      await node.watch.until('never', read, { signal: stop.signal, caller_key: 'ann', timeout_ms: 20 }),
    ).toBeUndefined();
    expect(reads).toBeGreaterThan(1);
  });
});
