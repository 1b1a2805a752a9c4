import { describe, expect, test } from 'bun:test';
import { createBatches } from '../../src/platform/watch/batches.ts';
import { rejectionOf } from '../support/refusal.ts';

describe('createBatches', () => {
  test('keys of one turn are read together, and each call gets its own value', async () => {
    const reads: number[][] = [];
    const read = createBatches<number, string>(async (keys) => {
      reads.push(keys);
      return keys.map((key) => `value ${key}`);
    });
    expect(await Promise.all([3, 1, 2].map(read))).toEqual(['value 3', 'value 1', 'value 2']);
    expect(await read(4)).toBe('value 4');
    expect(reads).toEqual([[3, 1, 2], [4]]);
  });

  test('an error of one key rejects only the calls for that key', async () => {
    const read = createBatches<number, string>(async (keys) =>
      keys.map((key) => (key === 2 ? new Error('not found') : `value ${key}`)),
    );
    const [first, second, third] = [1, 2, 3].map(read);
    expect((await rejectionOf(Error, second ?? Promise.resolve())).message).toBe('not found');
    expect([await first, await third]).toEqual(['value 1', 'value 3']);
  });

  test('a failed read rejects all its calls, and the next call reads again', async () => {
    let is_broken = true;
    const read = createBatches<number, string>(async (keys) => {
      if (is_broken) throw new Error('unavailable');
      return keys.map(String);
    });
    const both = [read(1), read(2)];
    for (const one of both) expect((await rejectionOf(Error, one)).message).toBe('unavailable');
    is_broken = false;
    expect(await read(3)).toBe('3');
  });

  test('a batch has at most a thousand keys', async () => {
    const sizes: number[] = [];
    const read = createBatches<number, number>(async (keys) => {
      sizes.push(keys.length);
      return keys;
    });
    const keys = Array.from({ length: 2_500 }, (_, key) => key);
    expect(await Promise.all(keys.map(read))).toEqual(keys);
    expect(sizes).toEqual([1_000, 1_000, 500]);
  });

  test('with names, equal keys of one turn are read once; a later turn reads again', async () => {
    const reads: string[][] = [];
    let value = 'old';
    const read = createBatches<string, string>(
      async (keys) => {
        reads.push(keys);
        return keys.map(() => value);
      },
      (key) => key,
    );
    expect(await Promise.all(['a', 'b', 'a'].map(read))).toEqual(['old', 'old', 'old']);
    value = 'new';
    expect(await read('a')).toBe('new');
    expect(reads).toEqual([['a', 'b'], ['a']]);
  });

  test('with names, a call during a read does not join it', async () => {
    const gate = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    let value = 'old';
    const read = createBatches<string, string>(
      async (keys) => {
        const seen = value;
        begun.resolve();
        if (seen === 'old') await gate.promise;
        return keys.map(() => seen);
      },
      (key) => key,
    );
    const first = read('a');
    await begun.promise;
    value = 'new';
    expect(await read('a')).toBe('new');
    gate.resolve();
    expect(await first).toBe('old');
  });

  test('without names, equal keys of one turn are all read', async () => {
    const reads: number[][] = [];
    const read = createBatches<number, number>(async (keys) => {
      reads.push(keys);
      return keys;
    });
    expect(await Promise.all([1, 1].map(read))).toEqual([1, 1]);
    expect(reads).toEqual([[1, 1]]);
  });
});
