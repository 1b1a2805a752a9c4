/** Reads a value by name. All callers of one turn of the event loop share the read. */
export type SharedReads<Value> = (name: string, read: () => Promise<Value>) => Promise<Value>;

/** The reads that begin together. */
interface Turn<Value> {
  begun: Promise<void>;
  reads: Map<string, Promise<Value>>;
}

/**
 * Returns a function by which all callers of one name in one turn share a read, because a change wakes all its watchers
 * in one turn. A call never joins a read that has begun, so its value includes all earlier changes. Unlike in a batch, each
 * name has its own read, so a slow one delays no other.
 */
export function createSharedReads<Value>(): SharedReads<Value> {
  /** All names wait for the same turn, because one change may concern a thousand. */
  let next: Turn<Value> | undefined;

  function planTurn(): Turn<Value> {
    const { promise: begun, resolve } = Promise.withResolvers<void>();
    setImmediate(() => {
      next = undefined;
      resolve();
    });
    return { begun, reads: new Map() };
  }

  return (name, read) => {
    next ??= planTurn();
    const { begun, reads } = next;
    const reading = reads.get(name) ?? begun.then(read);
    reads.set(name, reading);
    return reading;
  };
}
