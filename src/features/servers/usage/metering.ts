import { after, type Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import type { Events } from '../../../platform/events.ts';
import { type Loop, startDeletingOld, startLoop } from '../../../platform/loop.ts';
import { handleOf } from '../rules.ts';
import type { Runtime, UsageReading } from '../runtimes/runtime.ts';
import { INTERVAL_MS, type PlacedServer, type UsageSample } from '../tables.ts';
import { SAMPLES_KEPT_FOR_MS } from './usage-reading.ts';
import { createUsageSamples } from './usage-samples.ts';
import { deleteSamplesBefore, insertSamples } from './usage-samples-store.ts';
import { addReadings, selectMeters } from './usage-store.ts';

/** Samples to keep while the database does not answer. */
const UNSTORED_SAMPLES_MAX = 10_000;
/** Interval of readings. Usage after a server's last reading is not counted. */
const EVERY_MS = 2_000;

interface MeteringDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  readUsage: NonNullable<Runtime['readUsage']>;
  /** Returns this machine's servers. */
  listServers(): readonly PlacedServer[];
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
   * show; by server. Has an entry for each server of the previous reading, so a server that one reading lacks counts as
   * new in the next.
   */
  let earlier_ms = new Map<string, number>();

  /** Servers that an earlier process of the service has read, and this one now for the first time. */
  let metered_before = new Set<string>();
  const samples = createUsageSamples();
  /** Complete samples that are not in the database yet. */
  let unstored_samples: UsageSample[] = [];

  /** When this process took its previous reading. */
  let previous_read_ts: Date | undefined;

  async function step(): Promise<number> {
    const now = clock.now();
    const accepted = listServers().filter(({ identity }) => identity !== null);
    const used = await readUsage(accepted.map(handleOf));
    const fresh_ids = new Set([...used.keys()].filter((server_id) => !earlier_ms.has(server_id)));
    // Before the database is called: while it does not answer, each minute must still get its own sample.
    takeSamples(new Map([...used].filter(([server_id]) => !fresh_ids.has(server_id))), now);
    await readEarlier(used, [...fresh_ids]);
    takeSamples(new Map([...used].filter(([server_id]) => fresh_ids.has(server_id))), now);
    const readings = [...used].map(([server_id, { cpu_ms }]) => ({
      server_id,
      cpu_ms: cpu_ms + (earlier_ms.get(server_id) ?? 0),
    }));
    const interval_start = new Date(Math.floor(now.getTime() / INTERVAL_MS) * INTERVAL_MS);
    if (readings.length > 0) await addReadings(database.queries, readings, { now, previous_read_ts, interval_start });
    previous_read_ts = now;
    if (unstored_samples.length > 0) await insertSamples(database.queries, unstored_samples);
    unstored_samples = [];
    return 0;
  }

  function takeSamples(used: Map<string, UsageReading>, now: Date): void {
    unstored_samples = [...unstored_samples, ...samples.add(used, { now, metered_before })].slice(
      -UNSTORED_SAMPLES_MAX,
    );
  }

  /** Reads what an earlier process recorded of servers that this one reads for the first time. */
  async function readEarlier(used: Map<string, UsageReading>, fresh_ids: string[]): Promise<void> {
    const meters = fresh_ids.length > 0 ? await selectMeters(database.queries, fresh_ids) : new Map<string, number>();
    metered_before = new Set(meters.keys());
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
