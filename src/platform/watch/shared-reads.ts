/** Reads what a name stands for, together with whoever asks for it at the same moment. */
export type SharedReads<Value> = (name: string, read: () => Promise<Value>) => Promise<Value>;

/**
 * Lets all who ask for the same at the same moment share one read: a change wakes everybody who waits for it together.
 * Nobody joins a read that has begun: what was changed before he asked must be in what he sees.
 */
export function createSharedReads<Value>(): SharedReads<Value> {
  const wanted = new Map<string, Promise<Value>>();

  async function begin(name: string, read: () => Promise<Value>): Promise<Value> {
    // Until the end of this turn of the event loop, in which news wakes all of them.
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
