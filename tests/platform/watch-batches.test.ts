import { describe, expect, test } from 'bun:test';
import { createBatches } from '../../src/platform/watch/batches.ts';
import { rejectionOf } from '../support/refusal.ts';

describe('what is asked for in one turn', () => {
  test('is read in one go, and each gets his own, in whatever order', async () => {
    const asked: number[][] = [];
    const read = createBatches<number, string>(async (keys) => {
      asked.push(keys);
      return keys.map((key) => `value ${key}`);
    });
    expect(await Promise.all([3, 1, 2].map(read))).toEqual(['value 3', 'value 1', 'value 2']);
    expect(await read(4)).toBe('value 4');
    expect(asked).toEqual([[3, 1, 2], [4]]);
  });

  test('fails for him whose it is, and for nobody else', async () => {
    const read = createBatches<number, string>(async (keys) =>
      keys.map((key) => (key === 2 ? new Error('there is none') : `value ${key}`)),
    );
    const [first, second, third] = [1, 2, 3].map(read);
    expect((await rejectionOf(Error, second ?? Promise.resolve())).message).toBe('there is none');
    expect([await first, await third]).toEqual(['value 1', 'value 3']);
  });

  test('fails for all when it cannot be read, and the next is read anew', async () => {
    let is_broken = true;
    const read = createBatches<number, string>(async (keys) => {
      if (is_broken) throw new Error('it is away');
      return keys.map(String);
    });
    const both = [read(1), read(2)];
    for (const one of both) expect((await rejectionOf(Error, one)).message).toBe('it is away');
    is_broken = false;
    expect(await read(3)).toBe('3');
  });

  test('is read in pieces of a thousand', async () => {
    const sizes: number[] = [];
    const read = createBatches<number, number>(async (keys) => {
      sizes.push(keys.length);
      return keys;
    });
    const keys = Array.from({ length: 2_500 }, (_, key) => key);
    expect(await Promise.all(keys.map(read))).toEqual(keys);
    expect(sizes).toEqual([1_000, 1_000, 500]);
  });
});
