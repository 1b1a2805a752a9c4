import { expect, test } from 'bun:test';
import { createPacer, forEachAtOnce } from '../../src/platform/pacing.ts';
import { rejectionOf } from '../support/refusal.ts';

test('createPacer: long work yields to the event loop', async () => {
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 1);
  const pace = createPacer();
  const end = performance.now() + 100;
  while (performance.now() < end) await pace();
  clearInterval(timer);
  expect(turns).toBeGreaterThan(2);
});

test('forEachAtOnce: runs once for each item, within the limit, and waits for all when one fails', async () => {
  let at_work = 0;
  let most = 0;
  const done: number[] = [];
  const failure = new Error('the third one');
  const all = forEachAtOnce([1, 2, 3, 4, 5, 6, 7], 3, async (item) => {
    at_work += 1;
    most = Math.max(most, at_work);
    await Bun.sleep(1);
    at_work -= 1;
    if (item === 3) throw failure;
    done.push(item);
  });
  expect(await rejectionOf(Error, all)).toBe(failure);
  expect({ most, done: done.sort() }).toEqual({ most: 3, done: [1, 2, 4, 5, 6, 7] });
  await forEachAtOnce([], 3, () => Promise.reject(failure));
});
