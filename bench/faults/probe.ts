import { join } from 'node:path';
import type { Samples } from '../samples.ts';

/** One kind of request that the probe repeats. */
export interface ProbeLine {
  name: string;
  /** The whole request as text. */
  request: string;
  per_second: number;
}

export type ProbeOrder =
  /** `is_fresh`: each request opens a connection, like a new client. */
  { order: 'start'; port: number; lines: ProbeLine[]; is_fresh: boolean } | { order: 'stop' };

/** Milliseconds since each request was due, so that a frozen service is measured as often as a fast one. */
export interface Latencies extends Samples {
  /**
   * How many requests were not answered with 200, by status and code. Only those without an answer have a time.
   */
  failures: Record<string, number>;
}

export type ProbeReport = { is_there: true } | { is_started: true } | { latencies: Latencies[] };

/** A process that sends requests at a fixed rate, without waiting for answers. */
export interface Probe extends AsyncDisposable {
  start(order: Omit<ProbeOrder & { order: 'start' }, 'order'>): Promise<void>;
  stop(): Promise<Latencies[]>;
}

export async function startProbe(): Promise<Probe> {
  let onReport: (what: ProbeReport) => void = () => {};
  const nextReport = () =>
    new Promise<ProbeReport>((resolve) => {
      onReport = resolve;
    });
  const first = nextReport();
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'probe-process.ts')], {
    stdout: 'inherit',
    stderr: 'inherit',
    serialization: 'json',
    ipc: (what: ProbeReport) => onReport(what),
  });
  const ended = child.exited.then(() => Promise.reject(new Error('the probe has ended')));
  ended.catch(() => {});
  await Promise.race([first, ended]);
  async function ask(order: ProbeOrder): Promise<ProbeReport> {
    const answer = nextReport();
    child.send(order);
    return await Promise.race([answer, ended]);
  }
  return {
    async start(order) {
      await ask({ order: 'start', ...order });
    },
    async stop() {
      const report = await ask({ order: 'stop' });
      if (!('latencies' in report)) throw new Error('the probe did not report its latencies');
      return report.latencies;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child.exited;
    },
  };
}
