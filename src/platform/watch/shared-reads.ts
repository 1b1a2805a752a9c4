/** Reads the value of a name, together with all other callers of the same turn of the event loop. */
export type SharedReads<Value> = (name: string, read: () => Promise<Value>) => Promise<Value>;

/**
 * Lets all callers of the same name and turn share one read, because a change wakes all that wait for it. A call never
 * joins a read that has begun: its value includes what changed before the call. Unlike in a batch, each name has a read
 * of its own, so that a slow one delays no other.
 */
export function createSharedReads<Value>(): SharedReads<Value> {
  const wanted = new Map<string, Promise<Value>>();

  async function begin(name: string, read: () => Promise<Value>): Promise<Value> {
    await new Promise((resolve) => setImmediate(resolve));
    wanted.delete(name);
    return await read();
  }

  return (name, read) => {
    const reading = wanted.get(name) ?? begin(name, read);
    wanted.set(name, reading);
    return reading;
  };
}
