import { join } from 'node:path';

/** What the process that makes requests is told to do. */
export type CallOrder =
  | { order: 'open'; port: number; clients: number }
  | ({ order: 'call' } & Calls)
  | { order: 'close' };

/** Requests that are alike. */
export interface Calls {
  path: string;
  /** Lines of the request, each with its end. */
  headers: string;
  /** Taken in turn. */
  bodies: string[];
  seconds: number;
  /** How many are made a second; without it as many as are answered. */
  per_second?: number;
  count_max: number;
  /** Whether the answers are wanted. */
  keeps?: boolean;
}

/** What came of them. */
export interface Called {
  answered: number;
  seconds: number;
  /** Milliseconds until the answer. */
  p50: number;
  p99: number;
  /** Of the answers that were no 200: how many had which status and code. */
  failures: Record<string, number>;
  kept?: string[];
}

export type CallReport = { is_there: true } | { opened: number } | Called;

/** A process that makes requests over as many connections as it is told. */
export interface Callers extends AsyncDisposable {
  pid: number;
  open(port: number, clients: number): Promise<void>;
  call(calls: Calls): Promise<Called>;
}

export async function startCallers(): Promise<Callers> {
  let hear: (what: CallReport) => void = () => {};
  const heard = () =>
    new Promise<CallReport>((resolve) => {
      hear = resolve;
    });
  const first = heard();
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'callers.ts')], {
    stdout: 'inherit',
    stderr: 'inherit',
    serialization: 'json',
    ipc: (what: CallReport) => hear(what),
  });
  const ended = child.exited.then(() => Promise.reject(new Error('the callers have ended')));
  ended.catch(() => {});
  await Promise.race([first, ended]);
  const ask = async (order: CallOrder) => {
    const answer = heard();
    child.send(order);
    return await Promise.race([answer, ended]);
  };
  return {
    pid: child.pid,
    async open(port, clients) {
      await ask({ order: 'open', port, clients });
    },
    async call(calls) {
      const called = await ask({ order: 'call', ...calls });
      if (!('answered' in called)) throw new Error('the callers did not say what came of it');
      return called;
    },
    async [Symbol.asyncDispose]() {
      child.send({ order: 'close' });
      await child.exited;
    },
  };
}
