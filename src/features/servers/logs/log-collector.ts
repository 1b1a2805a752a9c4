import { isDeepStrictEqual } from 'node:util';
import { toServiceError } from '../../../platform/database/failures.ts';
import type { Events } from '../../../platform/events.ts';
import { handleOf } from '../rules.ts';
import type { Runtime } from '../runtimes/runtime.ts';
import { LOG_STREAMS, type PlacedServer } from '../tables.ts';
import type { LogName } from './log-store.ts';
import { type Collected, type Logs, PIECE_BYTES_MAX, type ReadOutput } from './logs.ts';

/**
 * Bytes to move in one round. A round starts every quarter of a second, so all servers of a machine together can write
 * four times as much per second without losing output.
 */
export const ROUND_BYTES_MAX = 8 * PIECE_BYTES_MAX;
const COLLECTED_AT_ONCE = 4;
/** Logs to check between two turns of the event loop. */
const LOGS_PER_TURN = 64;

/** A log and how to read the output for it. */
export interface LogSource {
  name: LogName;
  read: ReadOutput;
}

/** Returns the logs of a server, with how its runtime reads the output for each. */
export function logSourcesOf(
  runtime: Pick<Runtime, 'readOutput'>,
  server: Pick<PlacedServer, 'server_id' | 'identity'>,
): LogSource[] {
  const { server_id } = server;
  return LOG_STREAMS.map((stream) => ({
    name: { server_id, stream },
    read: (query) => runtime.readOutput(handleOf(server), stream, query),
  }));
}

/**
 * Returns a function that moves one round of output into the database: a piece of the output of each log, then further
 * pieces of those that have more, up to the bytes of a round. The next round starts with the first log that was not
 * reached. A log that cannot be read is reported, and again only after it was read. Throws failures of the database
 * only.
 */
export function createLogCollector(logs: Logs, events: Events): (sources: LogSource[]) => Promise<void> {
  let begin_at: LogName | undefined;
  /** The logs that could not be read the last time. */
  let unreadable = new Set<string>();

  return async function collectRound(sources) {
    const start = Math.max(
      sources.findIndex(({ name }) => isDeepStrictEqual(name, begin_at)),
      0,
    );
    const sources_left = [...sources.slice(start), ...sources.slice(0, start)];
    let bytes_left = ROUND_BYTES_MAX;
    let read_count = 0;
    const keys = new Set(sources.map(({ name }) => keyOf(name)));
    unreadable = new Set([...unreadable].filter((key) => keys.has(key)));

    /** Moves a piece of output. If that fails, the others go on; but if the database fails, the round ends. */
    async function collect({ name, read }: LogSource): Promise<Collected> {
      try {
        const collected = await logs.collect(name, read, false);
        unreadable.delete(keyOf(name));
        return collected;
      } catch (cause) {
        if (toServiceError(cause)) throw cause;
        const { server_id } = name;
        if (!unreadable.has(keyOf(name)))
          events.emit({ event: 'server_step_failed', server_id, step: 'collect', cause });
        unreadable.add(keyOf(name));
        return { bytes: 0, has_more: false };
      }
    }

    async function work(): Promise<void> {
      while (bytes_left >= PIECE_BYTES_MAX) {
        const source = sources_left.shift();
        if (!source) return;
        // Reserves the bytes before reading, so that concurrent reads keep to the limit.
        bytes_left -= PIECE_BYTES_MAX;
        const { bytes, has_more } = await collect(source);
        bytes_left += PIECE_BYTES_MAX - bytes;
        if (has_more) sources_left.push(source);
        read_count += 1;
        if (read_count % LOGS_PER_TURN === 0) await new Promise(setImmediate);
      }
    }

    const ends = await Promise.allSettled(Array.from({ length: COLLECTED_AT_ONCE }, work));
    begin_at = sources_left[0]?.name;
    const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
    if (failures.length > 0) throw new AggregateError(failures, 'output of servers was not collected');
  };
}

const keyOf = ({ server_id, stream }: LogName): string => `${server_id} ${stream}`;
