import { join } from 'node:path';
import type { Samples } from '../samples.ts';

/** One kind of request that the probe repeats. */
export interface ProbeLine {
  name: string;
  /** The whole request, as it is sent. */
  request: string;
  per_second: number;
}

export type ProbeOrder =
  /** `is_fresh`: each request over a connection of its own, as new clients come. */
  { order: 'start'; port: number; lines: ProbeLine[]; is_fresh: boolean } | { order: 'stop' };

/** Milliseconds from when each request was due, so that a service that stands still is not measured less often. */
export interface Latencies extends Samples {
  /** What was not answered with 200: how often by its status and code. Its time counts only where no answer came. */
  failures: Record<string, number>;
}

export type ProbeReport = { is_there: true } | { is_started: true } | { latencies: Latencies[] };

/** A process of its own that asks the service at a bounded rate, and waits for no answer before it asks again. */
export interface Probe extends AsyncDisposable {
  start(order: Omit<ProbeOrder & { order: 'start' }, 'order'>): Promise<void>;
  stop(): Promise<Latencies[]>;
}

export async function startProbe(): Promise<Probe> {
  let hear: (what: ProbeReport) => void = () => {};
  const heard = () =>
    new Promise<ProbeReport>((resolve) => {
      hear = resolve;
    });
  const first = heard();
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'probe-process.ts')], {
    stdout: 'inherit',
    stderr: 'inherit',
    serialization: 'json',
    ipc: (what: ProbeReport) => hear(what),
  });
  const ended = child.exited.then(() => Promise.reject(new Error('the probe has ended')));
  ended.catch(() => {});
  await Promise.race([first, ended]);
  async function ask(order: ProbeOrder): Promise<ProbeReport> {
    const answer = heard();
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
