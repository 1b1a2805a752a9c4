import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { KeptEvents } from '../../platform/kept-events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import { HOUR_MS } from '../../platform/units.ts';
import { readMemory } from './process-limits.ts';
import { selectLoad } from './store.ts';
import type { DatabaseLoad } from './tables.ts';
import type { ServiceSample, UsedLimit } from './wire.ts';

export const STEP_MS = 15_000;
const KEPT_MAX = HOUR_MS / STEP_MS;
/**
 * Time between two measurements of the event loop delay. A shorter delay may be missed, but each measurement wakes an idle
 * service.
 */
const DELAY_RESOLUTION_MS = 500;
const NANOSECONDS_PER_MS = 1_000_000;

interface SamplesDependencies {
  database: Pick<Database, 'queries'>;
  clock: Clock;
  events: KeptEvents;
  /** Returns what is used of the limits of the process. */
  readLimits(): UsedLimit[];
}

export type Samples = ReturnType<typeof createSamples>;

/** Creates the samples of this process: what it used and did in each step of the last hour. They are in memory only. */
export function createSamples({ database, clock, events, readLimits }: SamplesDependencies) {
  const kept: ServiceSample[] = [];
  let load: DatabaseLoad | undefined;
  let before = readTotals();

  function readTotals() {
    const { user, system } = process.cpuUsage();
    return {
      at_ms: performance.now(),
      cpu_us: user + system,
      requests: events.count('request_served'),
      failed_requests: events.count('request_failed'),
    };
  }

  async function take(delay_ms: number): Promise<void> {
    // Without the database there are samples, too.
    load = await selectLoad(database.queries).catch(() => undefined);
    const limits = new Map(readLimits().map(({ name, used }) => [name, used]));
    const totals = readTotals();
    const passed_ms = Math.max(1, totals.at_ms - before.at_ms);
    const now = clock.now();
    const memory_bytes = readMemory();
    kept.push({
      ts: now.toISOString(),
      span_ms: Math.round(passed_ms),
      cpu: Math.round((totals.cpu_us - before.cpu_us) / passed_ms),
      delay_ms: Math.round(delay_ms),
      requests: totals.requests - before.requests,
      failed_requests: totals.failed_requests - before.failed_requests,
      sockets: limits.get('sockets') ?? 0,
      watchers: limits.get('watchers') ?? 0,
      ...(memory_bytes !== undefined && { memory_bytes }),
      ...(load && { database_connections: load.connections }),
    });
    const first = kept.findIndex(({ ts }) => Date.parse(ts) >= now.getTime() - HOUR_MS);
    kept.splice(0, Math.max(first, kept.length - KEPT_MAX));
    before = totals;
  }

  return {
    list: (): readonly ServiceSample[] => kept,
    /** What PostgreSQL had open at the last sample; undefined if it did not answer. */
    lastLoad: (): DatabaseLoad | undefined => load,
    /** Starts the loop that takes samples. */
    startTaking(signal: AbortSignal): Loop {
      const delays = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
      delays.enable();
      const loop = startLoop({
        name: 'process-samples',
        every_ms: STEP_MS,
        signal,
        events,
        async step() {
          await take(delays.max / NANOSECONDS_PER_MS);
          delays.reset();
          return 0;
        },
      });
      return { ...loop, stopped: loop.stopped.finally(() => delays.disable()) };
    },
  };
}
