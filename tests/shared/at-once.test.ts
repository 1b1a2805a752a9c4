import { expect, test } from 'bun:test';
import { forEachAtOnce, forEachUntilFailure } from '../../src/shared/at-once.ts';
import { rejectionOf } from '../support/refusal.ts';

test('forEachAtOnce: runs once for each item, within the limit, and waits for all when one fails', async () => {
  let running_count = 0;
  let running_max = 0;
  const done: number[] = [];
  const failure = new Error('the third one');
  const all = forEachAtOnce([1, 2, 3, 4, 5, 6, 7], 3, async (item) => {
    running_count += 1;
    running_max = Math.max(running_max, running_count);
    await Bun.sleep(1);
    running_count -= 1;
    if (item === 3) throw failure;
    done.push(item);
  });
  expect(await rejectionOf(Error, all)).toBe(failure);
  expect({ running_max, done: done.sort() }).toEqual({ running_max: 3, done: [1, 2, 4, 5, 6, 7] });
  await forEachAtOnce([], 3, () => Promise.reject(failure));
});

test('forEachUntilFailure: throws the first failure while others run, and begins no other item', async () => {
  const begun: number[] = [];
  const first = Promise.withResolvers<void>();
  const failure = new Error('the second one');
  const all = forEachUntilFailure([1, 2, 3, 4], 2, async (item) => {
    begun.push(item);
    if (item === 2) throw failure;
    await first.promise;
  });
  expect(await rejectionOf(Error, all)).toBe(failure);
  first.resolve();
  await Bun.sleep(0);
  const done: number[] = [];
  await forEachUntilFailure([1, 2, 3], 2, async (item) => done.push(item));
  expect({ begun, done }).toEqual({ begun: [1, 2], done: [1, 2, 3] });
});
