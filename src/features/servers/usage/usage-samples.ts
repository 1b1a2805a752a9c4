import type { UsageReading } from '../runtimes/runtime.ts';
import { minuteOf, type UsageSample } from '../tables.ts';

/** The readings of a server in the current minute. */
interface Current {
  minute: number;
  /** The reading at the end of the minute before. */
  from: UsageReading;
  last: UsageReading;
  memory_bytes: number | null;
}

/**
 * Creates the samples of servers: one for each minute, from all readings in it. `add` returns the samples of minutes that are
 * over. After minutes without a reading, the use in them is in no sample. `metered_before`: servers that an earlier process
 * read; only later use counts.
 */
export function createUsageSamples() {
  const currents = new Map<string, Current>();

  function begin(minute: number, from: UsageReading, reading: UsageReading): Current {
    return { minute, from, last: reading, memory_bytes: reading.memory_bytes ?? null };
  }

  return {
    add(
      readings: ReadonlyMap<string, UsageReading>,
      { now, metered_before }: { now: Date; metered_before: ReadonlySet<string> },
    ): UsageSample[] {
      const minute = minuteOf(now);
      const complete: UsageSample[] = [];
      for (const [server_id, reading] of readings) {
        const current = currents.get(server_id);
        if (!current) {
          const from = metered_before.has(server_id) ? reading : { cpu_ms: 0 };
          currents.set(server_id, begin(minute, from, reading));
        } else if (current.minute !== minute) {
          if (current.minute === minute - 1) current.last = reading;
          complete.push(toSample(server_id, current));
          currents.set(server_id, begin(minute, reading, reading));
        } else {
          current.last = reading;
          const memory_bytes = Math.max(current.memory_bytes ?? 0, reading.memory_bytes ?? 0);
          if (reading.memory_bytes !== undefined) current.memory_bytes = memory_bytes;
        }
      }
      for (const [server_id, current] of currents) {
        // A reading may be missing although the server runs: its sample is complete when the minute is over.
        if (current.minute === minute) continue;
        complete.push(toSample(server_id, current));
        currents.delete(server_id);
      }
      return complete;
    },
  };
}

function toSample(server_id: string, { minute, from, last, memory_bytes }: Current): UsageSample {
  const growthOf = (key: 'received_bytes' | 'sent_bytes') => {
    const total = last[key];
    return total === undefined ? null : Math.max(total - (from[key] ?? 0), 0);
  };
  return {
    server_id,
    minute,
    cpu_ms: Math.max(last.cpu_ms - from.cpu_ms, 0),
    memory_bytes,
    received_bytes: growthOf('received_bytes'),
    sent_bytes: growthOf('sent_bytes'),
  };
}
