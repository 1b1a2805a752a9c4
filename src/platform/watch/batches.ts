import DataLoader from 'dataloader';

const KEYS_MAX = 1_000;

/**
 * Returns a function that reads one key together with all others of the same turn of the event loop, in which a change
 * wakes all that wait for it. A call never joins a read that has begun: its value includes what changed before the call.
 *
 * `readMany` returns a value for each key, in their order; an error for a key that cannot be read. Keys of one turn that
 * have the same `nameOf` are read once; without it every key is read.
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
