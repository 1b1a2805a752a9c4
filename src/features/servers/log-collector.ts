import { toServiceError } from '../../platform/database/failures.ts';
import type { LogName } from './log-store.ts';
import { type Collected, type Logs, PIECE_BYTES_MAX } from './logs.ts';

/**
 * Bytes of one round, which takes a quarter of a second: the rate at which a machine's servers can write without loss.
 */
export const ROUND_BYTES_MAX = 8 * PIECE_BYTES_MAX;
const COLLECTED_AT_ONCE = 4;
/** Logs to check between two turns of the event loop. */
const LOGS_PER_TURN = 64;

/** A log and the file that its server writes to. */
export interface LogSource {
  name: LogName;
  file: string;
}

/**
 * Returns a function that moves one round of output into the database: a piece of each log in turn, then more of those
 * with more, up to the bytes of a round. The next round starts with the first log not reached.
 */
export function createLogCollector(logs: Logs): (sources: LogSource[]) => Promise<void> {
  let begin_at: string | undefined;

  return async function collectRound(sources) {
    const start = Math.max(
      sources.findIndex(({ file }) => file === begin_at),
      0,
    );
    const waiting = [...sources.slice(start), ...sources.slice(0, start)];
    let bytes_left = ROUND_BYTES_MAX;
    let looked_at = 0;
    const failures: unknown[] = [];

    /** A log that cannot be read keeps no other from it; without the database none could be kept. */
    async function collect({ name, file }: LogSource): Promise<Collected> {
      try {
        return await logs.collect(name, file, false);
      } catch (cause) {
        if (toServiceError(cause)) throw cause;
        failures.push(cause);
        return { bytes: 0, has_more: false };
      }
    }

    async function work(): Promise<void> {
      while (bytes_left >= PIECE_BYTES_MAX) {
        const source = waiting.shift();
        if (!source) return;
        // Reserves the bytes before reading, so that concurrent reads keep to the limit.
        bytes_left -= PIECE_BYTES_MAX;
        const { bytes, has_more } = await collect(source);
        bytes_left += PIECE_BYTES_MAX - bytes;
        if (has_more) waiting.push(source);
        looked_at += 1;
        if (looked_at % LOGS_PER_TURN === 0) await new Promise(setImmediate);
      }
    }

    const ends = await Promise.allSettled(Array.from({ length: COLLECTED_AT_ONCE }, work));
    begin_at = waiting[0]?.file;
    failures.push(...ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : [])));
    if (failures.length > 0) throw new AggregateError(failures, 'output of servers was not collected');
  };
}
