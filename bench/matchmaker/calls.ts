import { join } from 'node:path';

/** An order for the process that makes requests. */
export type CallOrder = { order: 'open'; port: number; clients: number } | ({ order: 'call' } & Calls);

/** Requests to one path. Each comes from an address of its own, which X-Forwarded-For names. */
export interface Calls {
  path: string;
  /** Taken in turn. `headers`: lines of the request, each with its end. */
  requests: { headers: string; body: string }[];
  seconds: number;
  /** Requests per second; without it, each client sends a request when it has the answer to its last one. */
  per_second?: number | undefined;
  requests_max?: number;
  /** Whether to return the bodies of the answers. */
  keeps_answers?: boolean;
}

export interface Called {
  answered: number;
  seconds: number;
  /** From the moment at which a request was due to its answer. */
  p50_ms: number;
  p99_ms: number;
  /** Answers other than 200, by status and code. */
  failures: Record<string, number>;
  answers: string[];
}

export type CallReport = { is_there: true } | { opened: number } | Called;

/** A process that makes requests. */
export interface Callers extends AsyncDisposable {
  pid: number;
  /** Opens this many connections, one for each client, and closes the earlier ones. */
  open(port: number, clients: number): Promise<void>;
  call(calls: Calls): Promise<Called>;
}

export async function startCallers(): Promise<Callers> {
  let onReport: (report: CallReport) => void = () => {};
  const nextReport = () =>
    new Promise<CallReport>((resolve) => {
      onReport = resolve;
    });
  const first = nextReport();
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'callers.ts')], {
    stdout: 'inherit',
    stderr: 'inherit',
    serialization: 'json',
    ipc: (report: CallReport) => onReport(report),
  });
  const ended = child.exited.then(() => Promise.reject(new Error('the process that makes requests has ended')));
  ended.catch(() => {});
  await Promise.race([first, ended]);
  const send = async (order: CallOrder) => {
    const report = nextReport();
    child.send(order);
    return await Promise.race([report, ended]);
  };
  return {
    pid: child.pid,
    async open(port, clients) {
      await send({ order: 'open', port, clients });
    },
    async call(calls) {
      const called = await send({ order: 'call', ...calls });
      if (!('answered' in called)) throw new Error('the process that makes requests reported something else');
      return called;
    },
    async [Symbol.asyncDispose]() {
      child.disconnect();
      await child.exited;
    },
  };
}
