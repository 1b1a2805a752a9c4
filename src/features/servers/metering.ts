import { after, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import { type Loop, startDeletingOld, startLoop } from '../../platform/loop.ts';
import { handleOf } from './rules.ts';
import type { Runtime, UsageReading } from './runtimes/runtime.ts';
import { INTERVAL_MS, type ServerRow, type UsageSample } from './tables.ts';
import { SAMPLES_KEPT_FOR_MS } from './usage-reading.ts';
import { createUsageSamples } from './usage-samples.ts';
import { deleteSamplesBefore, insertSamples } from './usage-samples-store.ts';
import { addReadings, selectMeters } from './usage-store.ts';

/** Samples to keep while the database does not answer. */
const SAMPLES_WAITING_MAX = 10_000;
/** Interval of readings. Usage after a server's last reading is not counted. */
const EVERY_MS = 2_000;

interface MeteringDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  readUsage: NonNullable<Runtime['readUsage']>;
  /** Returns this machine's servers. */
  listServers(): readonly ServerRow[];
}

/**
 * Starts the loops that read what this machine's servers use, and store it: processor time by intervals for bills, and a
 * sample for each minute of the last day.
 */
export function startMetering(
  { database, clock, events, readUsage, listServers }: MeteringDependencies,
  signal: AbortSignal,
): Loop[] {
  /**
   * Processor time that an earlier process of the service recorded, and that the running processes of a server no longer
   * show; by server.
   */
  let earlier_ms = new Map<string, number>();

  /** Servers that an earlier process of the service has read, and this one now for the first time. */
  let adopted = new Set<string>();
  const samples = createUsageSamples();
  /** Samples to store. They wait while the database does not answer. */
  let waiting_samples: UsageSample[] = [];

  /** When this process took its previous reading. */
  let before: Date | undefined;

  async function step(): Promise<number> {
    const now = clock.now();
    const running = listServers().filter(({ identity }) => identity !== null);
    const used = await readUsage(running.map(handleOf));
    await readEarlier(used);
    const readings = [...used].map(([server_id, { cpu_ms }]) => ({
      server_id,
      cpu_ms: cpu_ms + (earlier_ms.get(server_id) ?? 0),
    }));
    const interval_start = new Date(Math.floor(now.getTime() / INTERVAL_MS) * INTERVAL_MS);
    if (readings.length > 0) await addReadings(database.queries, readings, { now, before, interval_start });
    before = now;
    waiting_samples = [...waiting_samples, ...samples.add(used, { now, adopted })].slice(-SAMPLES_WAITING_MAX);
    if (waiting_samples.length > 0) await insertSamples(database.queries, waiting_samples);
    waiting_samples = [];
    return 0;
  }

  async function readEarlier(used: Map<string, UsageReading>): Promise<void> {
    const fresh = [...used.keys()].filter((server_id) => !earlier_ms.has(server_id));
    const meters = fresh.length > 0 ? await selectMeters(database.queries, fresh) : new Map<string, number>();
    adopted = new Set(meters.keys());
    earlier_ms = new Map(
      [...used].map(([server_id, { cpu_ms }]) => [
        server_id,
        earlier_ms.get(server_id) ?? Math.max(0, (meters.get(server_id) ?? 0) - cpu_ms),
      ]),
    );
  }

  return [
    startLoop({ name: 'metering', every_ms: EVERY_MS, signal, events, step }),
    startDeletingOld({
      name: 'old-samples',
      signal,
      events,
      deleteOld: () => deleteSamplesBefore(database.queries, after(clock.now(), -SAMPLES_KEPT_FOR_MS)),
    }),
  ];
}
