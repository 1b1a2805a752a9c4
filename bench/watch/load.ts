import { join } from 'node:path';
import type { LoadOrder, LoadReport } from './orders.ts';

/** A process that watches: as many sockets or polls as it is told to open. */
export interface Load extends AsyncDisposable {
  pid: number;
  /** Opens them, and waits until each has been sent a body. */
  open(order: LoadOrder): Promise<void>;
  /** How many bodies have come. */
  countBodies(): Promise<number>;
  /** Calls back when the last of all has seen a number, until the returned function is called. */
  onReached(callback: (number: number, at: number) => void): () => void;
}

export async function startLoad(kind: 'listeners' | 'pollers'): Promise<Load> {
  const awaited = new Set<(what: LoadReport) => void>();
  const child = Bun.spawn([process.execPath, join(import.meta.dir, `${kind}.ts`)], {
    stdout: 'inherit',
    stderr: 'inherit',
    serialization: 'json',
    ipc(what: LoadReport) {
      for (const hear of [...awaited]) hear(what);
    },
  });
  const ended = child.exited.then(() => Promise.reject(new Error(`the ${kind} have ended`)));
  ended.catch(() => {});

  async function next<Value>(pick: (what: LoadReport) => Value | undefined): Promise<Value> {
    const come = Promise.withResolvers<Value>();
    const hear = (what: LoadReport) => {
      const value = pick(what);
      if (value !== undefined) come.resolve(value);
    };
    awaited.add(hear);
    try {
      return await Promise.race([come.promise, ended]);
    } finally {
      awaited.delete(hear);
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
      const hear = (what: LoadReport) => {
        if ('reached' in what) callback(what.reached, what.at);
      };
      awaited.add(hear);
      return () => awaited.delete(hear);
    },
    async [Symbol.asyncDispose]() {
      send({ order: 'close' });
      await child.exited;
    },
  };
}
