/** Reads a value by name. All callers of one turn of the event loop share the read. */
export type SharedReads<Value> = (name: string, read: () => Promise<Value>) => Promise<Value>;

/**
 * Returns a function by which all callers of one name in one turn share a read, because a change wakes all its watchers
 * in one turn. A call never joins a read that has begun, so its value includes all earlier changes. Unlike in a batch, each
 * name has its own read, so a slow one delays no other.
 */
export function createSharedReads<Value>(): SharedReads<Value> {
  const wanted = new Map<string, Promise<Value>>();
  /** Resolves in the next turn. All names wait for the same, because one change may concern a thousand. */
  let turn: Promise<void> | undefined;

  function nextTurn(): Promise<void> {
    turn ??= new Promise((resolve) => {
      setImmediate(() => {
        turn = undefined;
        resolve();
      });
    });
    return turn;
  }

  async function begin(name: string, read: () => Promise<Value>): Promise<Value> {
    await nextTurn();
    wanted.delete(name);
    return await read();
  }

  return (name, read) => {
    const reading = wanted.get(name) ?? begin(name, read);
    wanted.set(name, reading);
    return reading;
  };
}
