import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { DatabaseAddress } from '../../src/platform/database/database.ts';
import { ServiceError } from '../../src/platform/errors.ts';
import { openTestDatabase } from '../support/database/database.ts';
import { rejectionOf } from '../support/refusal.ts';
import { waitFor } from '../support/wait.ts';
import {
  answerOfState,
  incrementNumber,
  openWatchingNode,
  type Watched,
  type WatchingNode,
  watchNumbers,
} from '../support/watch/watching.ts';

const NEVER_ABORTED = new AbortController().signal;
const INDEX = /^[0-9a-f]{8}\.\d+$/;

let opened: AsyncDisposableStack;
let address: DatabaseAddress;
let node: WatchingNode;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  ({ address } = opened.use(await openTestDatabase()));
  node = opened.use(await openWatchingNode(address));
});
afterAll(async () => {
  await opened.disposeAsync();
});

const newName = (): string => crypto.randomUUID();

function answer(
  on: WatchingNode,
  numbers: ReturnType<typeof watchNumbers>,
  name: string,
  {
    watch_index,
    signal = NEVER_ABORTED,
    caller_key = name,
  }: { watch_index?: string; signal?: AbortSignal; caller_key?: string } = {},
): Promise<Watched<number>> {
  return answerOfState(on, numbers, name, { watch_index, signal, caller_key });
}

/** Returns whether an answer is still pending after another has completed. */
async function isWaiting(pending: Promise<unknown>, on = node): Promise<boolean> {
  const numbers = watchNumbers(on);
  const name = newName();
  const { watch } = await answer(on, numbers, name);
  const other = answer(on, numbers, name, { watch_index: watch.index });
  await incrementNumber(on, name);
  await other;
  return Bun.peek.status(pending) === 'pending';
}

describe('watch.answer', () => {
  test('without an index comes at once, with an index', async () => {
    const { view, watch } = await answer(node, watchNumbers(node), newName());
    expect(view).toBe(0);
    expect(watch.index).toMatch(INDEX);
    expect(watch.index).toEndWith('.0');
  });

  test('with the current index comes at the next change, with the state after it', async () => {
    const numbers = watchNumbers(node);
    const name = newName();
    const first = await answer(node, numbers, name);
    const next = answer(node, numbers, name, { watch_index: first.watch.index });
    expect(await isWaiting(next)).toBe(true);
    await incrementNumber(node, name);
    expect(await next).toEqual({ view: 1, watch: { index: first.watch.index.replace(/\.0$/, '.1') } });
  });

  test('with an outdated index comes at once', async () => {
    const numbers = watchNumbers(node);
    const name = newName();
    const { watch } = await answer(node, numbers, name);
    await incrementNumber(node, name);
    await incrementNumber(node, name);
    expect(await answer(node, numbers, name, { watch_index: watch.index })).toMatchObject({ view: 2 });
  });

  test('without watchers, a change causes no read', async () => {
    const numbers = watchNumbers(node);
    const name = newName();
    const { watch } = await answer(node, numbers, name);
    const next = answer(node, numbers, name, { watch_index: watch.index });
    await incrementNumber(node, name);
    await next;
    const { reads } = numbers;
    const received: (number | undefined)[] = [];
    const unsubscribe = node.feed.subscribe(`number:${name}`, (version) => received.push(version));
    await incrementNumber(node, name);
    await waitFor(() => received.includes(2), 'the change to arrive');
    expect(await isWaiting(new Promise(() => {}))).toBe(true);
    expect(numbers.reads).toBe(reads);
    unsubscribe();
  });

  test('ignores changes of other topics', async () => {
    const numbers = watchNumbers(node);
    const [name, other] = [newName(), newName()];
    const { watch } = await answer(node, numbers, name);
    const next = answer(node, numbers, name, { watch_index: watch.index });
    await incrementNumber(node, other);
    expect(await isWaiting(next)).toBe(true);
    await incrementNumber(node, name);
    expect((await next).view).toBe(1);
  });

  test('after the hold time is the current state, with the same index', async () => {
    await using short_hold_node = await openWatchingNode(address, { hold_ms: 20 });
    const numbers = watchNumbers(short_hold_node);
    const name = newName();
    await incrementNumber(short_hold_node, name);
    const first = await answer(short_hold_node, numbers, name);
    expect(await answer(short_hold_node, numbers, name, { watch_index: first.watch.index })).toEqual(first);
  });

  const FOREIGN = [
    { what: 'of another database', of: (index: string) => index.replace(/^.{8}/, '00000000') },
    { what: 'from after a backup that was restored', of: (index: string) => index.replace(/\d+$/, '999') },
    { what: 'without a number', of: (index: string) => index.replace(/\d+$/, '') },
    { what: 'with an invalid number', of: (index: string) => index.replace(/\d+$/, 'ten') },
    { what: 'with more than a number', of: (index: string) => `${index}.1` },
    { what: 'that is empty', of: () => '' },
    { what: 'that is unreadable', of: () => '\u0000{"$ne":1}'.repeat(1_000) },
  ];
  for (const { what, of } of FOREIGN) {
    test(`to an index ${what} comes at once, with a valid index`, async () => {
      const numbers = watchNumbers(node);
      const name = newName();
      const now = await answer(node, numbers, name);
      const again = await answer(node, numbers, name, { watch_index: of(now.watch.index) });
      expect(again).toEqual(now);
      const next = answer(node, numbers, name, { watch_index: again.watch.index });
      expect(await isWaiting(next)).toBe(true);
      await incrementNumber(node, name);
      expect((await next).view).toBe(1);
    });
  }

  test('with the index of another process waits for a change', async () => {
    const name = newName();
    await incrementNumber(node, name);
    const first = await answer(node, watchNumbers(node), name);
    await using other = await openWatchingNode(address);
    const next = answer(other, watchNumbers(other), name, { watch_index: first.watch.index });
    expect(await isWaiting(next, other)).toBe(true);
    await incrementNumber(node, name);
    expect(await next).toEqual({ view: 2, watch: { index: first.watch.index.replace(/1$/, '2') } });
  });

  test('ends when its client disconnects', async () => {
    const numbers = watchNumbers(node);
    const name = newName();
    const { watch } = await answer(node, numbers, name);
    const leaving = new AbortController();
    const next = answer(node, numbers, name, { watch_index: watch.index, signal: leaving.signal });
    expect(await isWaiting(next)).toBe(true);
    leaving.abort();
    expect(await next).toEqual({ view: 0, watch });
    expect(await answer(node, numbers, name, { watch_index: watch.index, signal: leaving.signal })).toEqual({
      view: 0,
      watch,
    });
  });

  test('that fails does not affect the next', async () => {
    const name = newName();
    const failing = {
      topics: () => [`number:${name}`],
      read: () => Promise.reject(new ServiceError('GAME_NOT_FOUND', {})),
    };
    const waiting = { watch_index: undefined, signal: NEVER_ABORTED, caller_key: name };
    const { code } = await rejectionOf(ServiceError, answerOfState(node, failing, name, waiting));
    expect(code).toBe('GAME_NOT_FOUND');
    expect((await answer(node, watchNumbers(node), name)).view).toBe(0);
  });
});

test('watch.answer: a change is read once for all watchers', async () => {
  const numbers = watchNumbers(node);
  const name = newName();
  const { watch } = await answer(node, numbers, name);
  const waiting = Array.from({ length: 500 }, (_, number) =>
    answer(node, numbers, name, { watch_index: watch.index, caller_key: `player ${number}` }),
  );
  expect(await isWaiting(Promise.race(waiting))).toBe(true);
  // One read for the first answer, one for the polls that wait now.
  await waitFor(() => numbers.reads === 2, 'the reads before the change');
  numbers.reads = 0;
  await incrementNumber(node, name);
  const answers = await Promise.all(waiting);
  expect(new Set(answers.map(({ view }) => view))).toEqual(new Set([1]));
  expect(numbers.reads).toBe(1);
});

test('watch.answer: keys do not share states', async () => {
  const reads: unknown[] = [];
  const watchable = {
    topics: () => ['keys'],
    async read(key: { name: string; identity_id: string }) {
      reads.push(key);
      return key.identity_id;
    },
  };
  const ask = (identity_id: string) =>
    answerOfState(
      node,
      watchable,
      { name: 'one', identity_id },
      { watch_index: undefined, signal: NEVER_ABORTED, caller_key: identity_id },
    );
  const answers = await Promise.all(['ann', 'bob', 'ann', 'bob'].map(ask));
  expect(answers.map(({ view }) => view)).toEqual(['ann', 'bob', 'ann', 'bob']);
  expect(reads).toHaveLength(2);
});
