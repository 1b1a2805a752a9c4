import { describe, expect, test } from 'bun:test';
import { setImmediate } from 'node:timers/promises';
import { createRounds, RoundQueue, sizeOfRound } from '../../src/platform/rounds.ts';

const DEFAULTS = { round_max: 512, waiting_max: 1_000 };

/** Opens rounds that take two turns of the event loop, and records their sizes. */
function openRounds(options: Partial<typeof DEFAULTS> = {}) {
  const sizes: number[] = [];
  const work = async (numbers: number[]) => {
    sizes.push(numbers.length);
    await setImmediate();
    await setImmediate();
    return numbers.map((number) => number * 2);
  };
  return { sizes, double: createRounds({ ...DEFAULTS, ...options, work }) };
}

describe('a round', () => {
  test('runs at once for a single item', async () => {
    const { sizes, double } = openRounds();
    expect(await double(4)).toBe(8);
    expect(await double(5)).toBe(10);
    expect(sizes).toEqual([1, 1]);
  });

  test('returns the result of each item', async () => {
    const { double } = openRounds({ round_max: 16 });
    const numbers = Array.from({ length: 100 }, (_, number) => number);
    expect(await Promise.all(numbers.map(double))).toEqual(numbers.map((number) => number * 2));
  });

  test('that fails rejects its own items and no others', async () => {
    const work = async (numbers: number[]) => {
      await setImmediate();
      if (numbers.includes(3)) throw new Error('no threes');
      return numbers;
    };
    const add = createRounds({ ...DEFAULTS, round_max: 2, work });
    const outcomes = await Promise.allSettled([1, 2, 3, 4].map(add));
    // The rounds are [1], [2, 3] and [4].
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
  });

  test('refuses items beyond its queue limit', async () => {
    const { double } = openRounds({ waiting_max: 2 });
    const outcomes = await Promise.allSettled([1, 2, 3, 4].map(double));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected']);
    expect(outcomes[3]).toMatchObject({ reason: { code: 'DATABASE_BUSY' } });
  });

  test('takes half of the items of busy callers: one half is answered while the other is processed', async () => {
    const { sizes, double } = openRounds();
    const CALLERS = 64;
    const doubleOften = async (number: number) => {
      for (let time = 0; time < 10; time += 1) expect(await double(number)).toBe(number * 2);
    };
    await Promise.all(Array.from({ length: CALLERS }, (_, number) => doubleOften(number)));
    expect(sizes[0]).toBe(1);
    // The last rounds take the remaining items.
    const steady_sizes = sizes.slice(2, -2);
    expect(steady_sizes.length).toBeGreaterThan(10);
    for (const size of steady_sizes) expect(size).toBe(CALLERS / 2);
  });
});

test('a queue of rounds: items that are added first are processed before all that wait', async () => {
  const rounds: number[][] = [];
  const done = Promise.withResolvers<void>();
  const queue = new RoundQueue<number>({
    round_max: 2,
    async work(round) {
      rounds.push(round);
      await setImmediate();
      if (rounds.length === 1) queue.addFirst([10, 11, 12]);
      if (round.includes(4)) done.resolve();
    },
  });
  for (const item of [1, 2, 3, 4]) queue.add(item);
  await done.promise;
  expect(rounds).toEqual([[1], [10, 11], [12, 2], [3, 4]]);
  queue.addFirst([5]);
  await setImmediate();
  expect(rounds.at(-1)).toEqual([5]);
});

describe('the size of a round', () => {
  test.each([
    { waiting: 1, last: 0, size: 16 },
    { waiting: 63, last: 1, size: 32 },
    { waiting: 32, last: 32, size: 32 },
    // Fewer items than in the last round: all of them.
    { waiting: 100, last: 400, size: 250 },
    { waiting: 10_000, last: 512, size: 512 },
    { waiting: 1, last: 999, size: 500 },
  ])('with $waiting items waiting after a round of $last is at most $size', ({ waiting, last, size }) => {
    expect(sizeOfRound({ waiting, last, round_max: 512 })).toBe(size);
  });
});
