import { join } from 'node:path';
import type { LoadOrder, LoadReport } from './orders.ts';

/** A process with many watchers: sockets or polls. */
export interface Load extends AsyncDisposable {
  pid: number;
  /** Opens watchers, and waits until each has received a body. */
  open(order: LoadOrder): Promise<void>;
  /** Returns the number of received bodies. */
  countBodies(): Promise<number>;
  /** Calls back each time that the last watcher has seen a number, until the returned function is called. */
  onReached(callback: (number: number, at: number) => void): () => void;
}

export async function startLoad(kind: 'listeners' | 'pollers'): Promise<Load> {
  const listeners = new Set<(what: LoadReport) => void>();
  const child = Bun.spawn([process.execPath, join(import.meta.dir, `${kind}.ts`)], {
    stdout: 'inherit',
    stderr: 'inherit',
    serialization: 'json',
    ipc(what: LoadReport) {
      for (const onReport of [...listeners]) onReport(what);
    },
  });
  const ended = child.exited.then(() => Promise.reject(new Error(`the process of the ${kind} has ended`)));
  ended.catch(() => {});

  async function next<Value>(pick: (what: LoadReport) => Value | undefined): Promise<Value> {
    const come = Promise.withResolvers<Value>();
    const onReport = (what: LoadReport) => {
      const value = pick(what);
      if (value !== undefined) come.resolve(value);
    };
    listeners.add(onReport);
    try {
      return await Promise.race([come.promise, ended]);
    } finally {
      listeners.delete(onReport);
    }
  }

  const send = (order: LoadOrder) => child.send(order);
  await next((what) => ('is_there' in what ? true : undefined));
  return {
    pid: child.pid,
    async open(order) {
      const opened = next((what) => ('opened' in what ? what.opened : undefined));
      send(order);
      await opened;
    },
    async countBodies() {
      const counted = next((what) => ('bodies' in what ? what.bodies : undefined));
      send({ order: 'count' });
      return await counted;
    },
    onReached(callback) {
      const onReport = (what: LoadReport) => {
        if ('reached' in what) callback(what.reached, what.at);
      };
      listeners.add(onReport);
      return () => listeners.delete(onReport);
    },
    async [Symbol.asyncDispose]() {
      child.disconnect();
      await child.exited;
    },
  };
}
