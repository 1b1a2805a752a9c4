import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import { cpuTimeBySession, isRunning } from '../../platform/processes.ts';
import { selectOfNode } from './store.ts';
import { addReadings } from './usage-store.ts';

/** What a server uses after its last reading is nobody's: at the most this much of its life. */
const EVERY_MS = 2_000;
/** A row for each server and this much time. */
const INTERVAL_MS = 10 * 60_000;

interface MeteringDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  node: { node_id: string };
}

/** Reads how much processor time the servers of this machine use, their whole process trees, and keeps it by intervals. */
export function startMetering({ database, clock, events, node }: MeteringDependencies, signal: AbortSignal): Loop {
  return startLoop({
    name: 'metering',
    every_ms: EVERY_MS,
    signal,
    events,
    async step() {
      const running = await selectOfNode(database.queries, node.node_id);
      const by_session = cpuTimeBySession();
      const readings = running.flatMap(({ server_id, process }) => {
        // A server's first process leads a session of its own.
        const cpu_ms = process && isRunning(process) ? by_session.get(process.pid) : undefined;
        return cpu_ms === undefined ? [] : [{ server_id, cpu_ms }];
      });
      const interval_start = new Date(Math.floor(clock.now().getTime() / INTERVAL_MS) * INTERVAL_MS);
      if (readings.length > 0) await addReadings(database.queries, readings, interval_start);
      return 0;
    },
  });
}
