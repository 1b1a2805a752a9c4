import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { ServiceError } from '../../src/platform/errors.ts';
import { openTestDatabase } from '../support/database.ts';
import { rejectionOf } from '../support/refusal.ts';
import { waitFor } from '../support/wait.ts';
import { answerOf, openWatchingNode, raiseWord, type WatchingNode, watchWords } from '../support/watching.ts';

const PER_CALLER_MAX = 64;
const IN_ALL_MAX = 20_000;

describe('waiters for a change', () => {
  let opened: AsyncDisposableStack;
  let node: WatchingNode;
  let everybody: AbortController;
  beforeAll(async () => {
    opened = new AsyncDisposableStack();
    const { address } = opened.use(await openTestDatabase());
    node = opened.use(await openWatchingNode(address));
  });
  afterAll(async () => {
    await opened.disposeAsync();
  });
  beforeEach(() => {
    everybody = new AbortController();
  });
  afterEach(() => everybody.abort());

  /** Waits for what never comes, without the database. */
  const wait = (caller_key: string, signal: AbortSignal = everybody.signal) =>
    node.watch.until('never', async () => undefined, { signal, caller_key, timeout_ms: 600_000 });
  const refusalOf = (work: Promise<unknown>) => rejectionOf<ServiceError>(ServiceError, work);

  test(`are at most ${PER_CALLER_MAX} for each caller; others are not kept out by them`, async () => {
    const waiting = Array.from({ length: PER_CALLER_MAX }, () => wait('ann'));
    const { code, status, retry_after_ms } = await refusalOf(wait('ann'));
    expect({ code, status, retry_after_ms }).toEqual({ code: 'TOO_MANY_WATCHERS', status: 429, retry_after_ms: 1_000 });
    const other = wait('bob');
    everybody.abort();
    expect(new Set(await Promise.all([...waiting, other]))).toEqual(new Set([undefined]));
  });

  const ENDS = [
    {
      how: 'go',
      async end() {
        const gone = new AbortController();
        const leaving = wait('ann', gone.signal);
        await expectFull();
        gone.abort();
        await leaving;
      },
    },
    {
      how: 'are answered',
      async end() {
        const words = watchWords(node);
        const asking = { watch_index: undefined, signal: everybody.signal, caller_key: 'ann' };
        const { watch } = await answerOf(node, words, 'ann', asking);
        const answered = answerOf(node, words, 'ann', { ...asking, watch_index: watch.index });
        await expectFull();
        await raiseWord(node, 'ann');
        await answered;
      },
    },
    {
      how: 'are not answered in time',
      async end() {
        const waiting = { signal: everybody.signal, caller_key: 'ann', timeout_ms: 20 };
        await node.watch.until('never', async () => undefined, waiting);
      },
    },
    {
      how: 'fail',
      async end() {
        const waiting = { signal: everybody.signal, caller_key: 'ann', timeout_ms: 600_000 };
        await rejectionOf(
          Error,
          node.watch.until('never', () => Promise.reject(new Error('it fails')), waiting),
        );
      },
    },
  ];
  const expectFull = async () => expect((await refusalOf(wait('ann'))).code).toBe('TOO_MANY_WATCHERS');

  for (const { how, end } of ENDS) {
    test(`give their one place back when they ${how}`, async () => {
      const waiting = Array.from({ length: PER_CALLER_MAX - 1 }, () => wait('ann'));
      await end();
      await end();
      const last = wait('ann');
      await expectFull();
      everybody.abort();
      await Promise.all([...waiting, last]);
    });
  }

  test(`are at most ${IN_ALL_MAX} in all; there is room again when one has gone`, async () => {
    // Each caller goes by a signal of his own, as requests do.
    const callers = Array.from({ length: Math.ceil(IN_ALL_MAX / PER_CALLER_MAX) }, () => new AbortController());
    const waiting = Array.from({ length: IN_ALL_MAX }, (_, number) => {
      const caller = Math.floor(number / PER_CALLER_MAX);
      return wait(`player ${caller}`, callers[caller]?.signal);
    });
    expect((await refusalOf(wait('one more'))).code).toBe('TOO_MANY_WATCHERS');
    callers[0]?.abort();
    await Promise.all(waiting.slice(0, PER_CALLER_MAX));
    const room = Array.from({ length: PER_CALLER_MAX }, () => wait('one more'));
    expect((await refusalOf(wait('yet another'))).code).toBe('TOO_MANY_WATCHERS');
    everybody.abort();
    for (const caller of callers) caller.abort();
    await Promise.all([...waiting, ...room]);
  });

  test('requests that do not wait take no slot', async () => {
    const waiting = Array.from({ length: PER_CALLER_MAX }, () => wait('ann'));
    const looking = { watch_index: undefined, signal: everybody.signal, caller_key: 'ann' };
    expect((await answerOf(node, watchWords(node), 'untouched', looking)).view).toBe(0);
    everybody.abort();
    await Promise.all(waiting);
  });

  test('until something is seen look first, then after each news', async () => {
    let looks = 0;
    let wanted = false;
    const look = async () => {
      looks += 1;
      return wanted ? 'seen' : undefined;
    };
    const seen = node.watch.until('word:ann', look, {
      signal: everybody.signal,
      caller_key: 'ann',
      timeout_ms: 600_000,
    });
    await waitFor(() => looks === 1, 'the first look');
    await raiseWord(node, 'ann');
    await waitFor(() => looks === 2, 'the second look');
    wanted = true;
    await raiseWord(node, 'ann');
    expect(await seen).toBe('seen');
    expect(looks).toBe(3);
  });

  test('see a change of which they hear while they look', async () => {
    let value = 'old';
    const look = async () => {
      const seen = value;
      if (seen === 'new') return seen;
      const heard = Promise.withResolvers<void>();
      const unsubscribe = node.feed.subscribe('word:eve', () => heard.resolve());
      value = 'new';
      await raiseWord(node, 'eve');
      await heard.promise;
      unsubscribe();
      return undefined;
    };
    const waiting = { signal: everybody.signal, caller_key: 'ann', timeout_ms: 600_000 };
    expect(await node.watch.until('word:eve', look, waiting)).toBe('new');
  });

  test('until a time is over look once more at its end, and give nothing', async () => {
    let looks = 0;
    const look = async () => {
      looks += 1;
      return undefined;
    };
    expect(
      await node.watch.until('never', look, { signal: everybody.signal, caller_key: 'ann', timeout_ms: 20 }),
    ).toBeUndefined();
    expect(looks).toBeGreaterThan(1);
  });
});
