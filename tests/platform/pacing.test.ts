import { expect, test } from 'bun:test';
import { createPacer, forEachAtOnce, shareRuns } from '../../src/platform/pacing.ts';
import { rejectionOf } from '../support/refusal.ts';

test('pacing: long work gives others their turn', async () => {
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

test('pacing: work is done on so many at a time, on each once, and all are waited for when one fails', async () => {
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

test('sharing runs: who asks during a run gets the next one, together with all others', async () => {
  let began = 0;
  let gate = Promise.withResolvers<void>();
  const ask = shareRuns(async () => {
    began += 1;
    const run = began;
    await gate.promise;
    if (run === 2) throw new Error('the second run');
    return run;
  });
  const first = [ask(), ask()];
  await new Promise(setImmediate);
  const second = [ask(), ask()];
  gate.resolve();
  expect(await Promise.all(first)).toEqual([1, 1]);
  for (const one of second) expect((await rejectionOf(Error, one)).message).toBe('the second run');
  gate = Promise.withResolvers();
  gate.resolve();
  expect(await ask()).toBe(3);
});
