const KEYS_MAX = 1_000;

interface Wanted<Key, Value> {
  key: Key;
  resolve(value: Value): void;
  reject(error: unknown): void;
}

/**
 * Reads many things in one go: those that are asked for in one turn of the event loop, in which news of all of them comes.
 * `readMany` gives a value for each key, in their order; an error for one that cannot be read.
 */
export function createBatches<Key, Value>(
  readMany: (keys: Key[]) => Promise<(Value | Error)[]>,
): (key: Key) => Promise<Value> {
  let wanted: Wanted<Key, Value>[] = [];

  async function readBatch(batch: Wanted<Key, Value>[]): Promise<void> {
    try {
      const values = await readMany(batch.map(({ key }) => key));
      for (const [index, { resolve, reject }] of batch.entries()) {
        const value = values[index];
        if (value instanceof Error) reject(value);
        else resolve(value as Value);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  function readWanted(): void {
    const all = wanted;
    wanted = [];
    // Each answers its own.
    for (let first = 0; first < all.length; first += KEYS_MAX) void readBatch(all.slice(first, first + KEYS_MAX));
  }

  return (key) => {
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    wanted.push({ key, resolve, reject });
    if (wanted.length === 1) setImmediate(readWanted);
    return promise;
  };
}
