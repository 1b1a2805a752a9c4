import DataLoader from 'dataloader';

const KEYS_MAX = 1_000;

/**
 * Returns a function that reads a key. All keys of one turn of the event loop are read together, because a change wakes
 * all its watchers in one turn. A call never joins a read that has begun, so its value includes all earlier changes.
 *
 * `readMany` returns a value for each key, in their order, or an error for a key that cannot be read. Keys of one turn
 * with the same `nameOf` are read once. Without `nameOf` each key is read.
 */
export function createBatches<Key, Value>(
  readMany: (keys: Key[]) => Promise<(Value | Error)[]>,
  nameOf?: (key: Key) => string,
): (key: Key) => Promise<Value> {
  const loader: DataLoader<Key, Value, unknown> = new DataLoader(
    (keys) => {
      loader.clearAll();
      return readMany([...keys]);
    },
    {
      cache: nameOf !== undefined,
      ...(nameOf && { cacheKeyFn: nameOf }),
      maxBatchSize: KEYS_MAX,
      batchScheduleFn: setImmediate,
    },
  );
  return (key) => loader.load(key);
}
