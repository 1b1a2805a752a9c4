import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import { handleOf } from './rules.ts';
import type { Runtime } from './runtimes/runtime.ts';
import { INTERVAL_MS, type ServerRow } from './tables.ts';
import { addReadings, selectMeters } from './usage-store.ts';

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
 * Starts the loop that reads the processor time of this machine's servers, whole process trees, and stores it by
 * intervals.
 */
export function startMetering(
  { database, clock, events, readUsage, listServers }: MeteringDependencies,
  signal: AbortSignal,
): Loop {
  /**
   * Processor time that an earlier process of the service recorded, and that the running processes of a server no longer
   * show; by server.
   */
  let earlier_ms = new Map<string, number>();

  /** When this process took its previous reading. */
  let before: Date | undefined;

  async function step(): Promise<number> {
    const now = clock.now();
    const running = listServers().filter(({ identity }) => identity !== null);
    const used = await readUsage(running.map(handleOf));
    await readEarlier(used);
    const readings = [...used].map(([server_id, cpu_ms]) => ({
      server_id,
      cpu_ms: cpu_ms + (earlier_ms.get(server_id) ?? 0),
    }));
    const interval_start = new Date(Math.floor(now.getTime() / INTERVAL_MS) * INTERVAL_MS);
    if (readings.length > 0) await addReadings(database.queries, readings, { now, before, interval_start });
    before = now;
    return 0;
  }

  async function readEarlier(used: Map<string, number>): Promise<void> {
    const fresh = [...used.keys()].filter((server_id) => !earlier_ms.has(server_id));
    const meters = fresh.length > 0 ? await selectMeters(database.queries, fresh) : new Map<string, number>();
    earlier_ms = new Map(
      [...used].map(([server_id, cpu_ms]) => [
        server_id,
        earlier_ms.get(server_id) ?? Math.max(0, (meters.get(server_id) ?? 0) - cpu_ms),
      ]),
    );
  }

  return startLoop({ name: 'metering', every_ms: EVERY_MS, signal, events, step });
}
